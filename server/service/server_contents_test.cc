// SPDX-License-Identifier: GPL-3.0-or-later
//
// Requests that name the contents of their archive, tokens of contents that
// were replaced, and listings by delimiter.
#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "grpcpp/client_context.h"

#include "proto/error_details.h"

#include "server/service/testing/server_fixture.h"
#include "testing/base/status_matchers.h"
#include "testing/base/test_level.h"

namespace quire {
namespace {

using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

class ServerContentsTest : public ServerTest {
 protected:
  std::string Uuid() {
    grpc::ClientContext context;
    v1::GetArchiveRequest request;
    request.set_archive("docs");
    v1::GetArchiveResponse response;
    EXPECT_TRUE(stub().GetArchive(&context, request, &response).ok());
    return response.archive().uuid();
  }

  void Replace(const std::vector<TestDocument>& documents) {
    WriteArchive(archive_path(), documents);
    EXPECT_THAT(Reload()[0], HasSubstr("replaced"));
  }

  // One call of each method that takes `uuid`.
  grpc::Status Read(const std::string& uuid) {
    grpc::ClientContext context;
    v1::ReadRequest request = ReadRequest(uuid);
    v1::ReadResponse response;
    return stub().Read(&context, request, &response);
  }

  grpc::Status ReadStream(const std::string& uuid) {
    grpc::ClientContext context;
    return Drain<v1::ReadStreamResponse>(
        *stub().ReadStream(&context, ReadRequest(uuid)));
  }

  grpc::Status BatchRead(const std::string& uuid) {
    grpc::ClientContext context;
    const auto stream = stub().BatchRead(&context);
    v1::BatchReadRequest request;
    request.set_archive("docs");
    request.set_archive_uuid(uuid);
    request.add_items()->mutable_document()->set_ordinal(0);
    stream->Write(request);
    // Later messages may repeat it.
    stream->Write(request);
    stream->WritesDone();
    return Drain<v1::BatchReadResponse>(*stream);
  }

  grpc::Status Scan(const std::string& uuid, bool stored_order,
                    const std::string& token = "",
                    std::string* next_token = nullptr) {
    grpc::ClientContext context;
    v1::ScanRequest request;
    request.set_archive("docs");
    if (!uuid.empty()) {
      request.set_archive_uuid(uuid);
    }
    request.set_stored_order(stored_order);
    if (!token.empty()) {
      request.set_resume_token(token);
    }
    const auto reader = stub().Scan(&context, request);
    v1::ScanResponse response;
    if (next_token != nullptr && reader->Read(&response)) {
      *next_token = response.resume_token();
    }
    return Drain<v1::ScanResponse>(*reader);
  }

  grpc::Status List(const v1::ListDocumentsRequest& request,
                    v1::ListDocumentsResponse& response) {
    grpc::ClientContext context;
    response.Clear();
    return stub().ListDocuments(&context, request, &response);
  }

  grpc::Status List(const std::string& uuid) {
    v1::ListDocumentsRequest request;
    request.set_archive("docs");
    request.set_archive_uuid(uuid);
    v1::ListDocumentsResponse response;
    return List(request, response);
  }

  static void ExpectUnknown(const grpc::Status& status) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION)
        << status.error_message();
    EXPECT_EQ(ReasonIn(status), "ARCHIVE_STATE_UNKNOWN");
    const auto details = ParseErrorDetails(status.error_details());
    ASSERT_TRUE(details.has_value());
    EXPECT_THAT(details->metadata,
                UnorderedElementsAre(Pair("archive", "docs")));
  }

 private:
  static v1::ReadRequest ReadRequest(const std::string& uuid) {
    v1::ReadRequest request;
    request.set_archive("docs");
    request.set_archive_uuid(uuid);
    request.mutable_document()->set_ordinal(0);
    return request;
  }

  template <typename Message, typename Stream>
  static grpc::Status Drain(Stream& stream) {
    for (Message message; stream.Read(&message);) {
    }
    return stream.Finish();
  }
};

TEST_F(ServerContentsTest, EachCallIsOfTheContentsThatItNames) {
  WriteArchive(archive_path(), MakeDocuments(20, 1));
  StartServer();
  const std::string first = Uuid();
  const auto expect_ok = [this](const std::string& uuid) {
    EXPECT_TRUE(Read(uuid).ok());
    EXPECT_TRUE(ReadStream(uuid).ok());
    EXPECT_TRUE(BatchRead(uuid).ok());
    EXPECT_TRUE(Scan(uuid, false).ok());
    EXPECT_TRUE(Scan(uuid, true).ok());
    EXPECT_TRUE(List(uuid).ok());
  };
  const auto expect_unknown = [this](const std::string& uuid) {
    ExpectUnknown(Read(uuid));
    ExpectUnknown(ReadStream(uuid));
    ExpectUnknown(BatchRead(uuid));
    if (!uuid.empty()) {
      ExpectUnknown(Scan(uuid, false));
      ExpectUnknown(Scan(uuid, true));
    }
    ExpectUnknown(List(uuid));
  };
  expect_ok(first);
  expect_unknown("");
  expect_unknown("no uuid");
  Replace(MakeDocuments(20, 2));
  const std::string second = Uuid();
  ASSERT_NE(second, first);
  expect_unknown(first);
  expect_ok(second);
  // The same contents have the same uuid.
  Replace(MakeDocuments(20, 1));
  expect_ok(first);
  expect_unknown(second);
}

// An archive that the client may not read stays as hidden as it was.
TEST_F(ServerContentsTest, AMissingArchiveIsMissingFirst) {
  WriteArchive(archive_path(), MakeDocuments(3, 1));
  StartServer();
  v1::ReadRequest request;
  request.set_archive("none");
  request.set_archive_uuid("x");
  grpc::ClientContext context;
  v1::ReadResponse response;
  EXPECT_EQ(ReasonIn(stub().Read(&context, request, &response)),
            "ARCHIVE_NOT_FOUND");
}

TEST_F(ServerContentsTest, ABatchIsOfOneState) {
  WriteArchive(archive_path(), MakeDocuments(20, 1));
  StartServer();
  for (const bool names_uuid : {false, true}) {
    grpc::ClientContext context;
    const auto stream = stub().BatchRead(&context);
    v1::BatchReadRequest request;
    request.set_archive("docs");
    if (names_uuid) {
      request.set_archive_uuid(Uuid());
    }
    request.add_items()->mutable_document()->set_ordinal(0);
    ASSERT_TRUE(stream->Write(request));
    v1::BatchReadResponse response;
    ASSERT_TRUE(stream->Read(&response));
    Replace(MakeDocuments(20, names_uuid ? 2 : 3));
    request.clear_archive_uuid();
    stream->Write(request);
    stream->WritesDone();
    EXPECT_FALSE(stream->Read(&response));
    const grpc::Status status = stream->Finish();
    if (names_uuid) {
      ExpectUnknown(status);
    } else {
      EXPECT_EQ(ReasonIn(status), "ARCHIVE_REPLACED");
    }
  }
  // A later message cannot name a state.
  grpc::ClientContext context;
  const auto stream = stub().BatchRead(&context);
  v1::BatchReadRequest request;
  request.set_archive("docs");
  request.add_items()->mutable_document()->set_ordinal(0);
  ASSERT_TRUE(stream->Write(request));
  request.set_archive_uuid(Uuid());
  stream->Write(request);
  stream->WritesDone();
  for (v1::BatchReadResponse response; stream->Read(&response);) {
  }
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("archive_uuid"));
}

TEST_F(ServerContentsTest, TokensAreOfTheContentsThatTheyName) {
  // Both in stored order, so that tokens of either scan exist.
  const auto write = [this](uint64_t seed) {
    WriteArchive(archive_path(), MakeDocuments(60, seed), "zstd", "",
                 /*is_reordered=*/true);
  };
  write(1);
  StartServer();
  const std::string uuid = Uuid();
  std::string logical;
  std::string stored;
  EXPECT_TRUE(Scan("", false, "", &logical).ok());
  EXPECT_TRUE(Scan("", true, "", &stored).ok());
  std::vector<v1::ListDocumentsRequest> lists(3);
  lists[1].set_delimiter("/");
  lists[2].set_first_ordinal(5);
  v1::ListDocumentsResponse response;
  for (v1::ListDocumentsRequest& list : lists) {
    list.set_archive("docs");
    list.set_page_size(1);
    ASSERT_TRUE(List(list, response).ok());
    ASSERT_TRUE(response.has_next_page_token());
    list.set_page_token(response.next_page_token());
    EXPECT_TRUE(List(list, response).ok());
  }
  EXPECT_TRUE(Scan(uuid, false, logical).ok());
  EXPECT_TRUE(Scan(uuid, true, stored).ok());
  // A server may choose the logical order for a request of the stored one.
  EXPECT_TRUE(Scan("", true, logical).ok());
  // A token of another order or listing is malformed, whatever its contents.
  EXPECT_EQ(ReasonIn(Scan("", false, stored)), "MALFORMED_REQUEST");
  for (const v1::ListDocumentsRequest& list : lists) {
    for (const v1::ListDocumentsRequest& other : lists) {
      if (&list != &other) {
        v1::ListDocumentsRequest mixed = list;
        mixed.set_page_token(other.page_token());
        EXPECT_EQ(ReasonIn(List(mixed, response)), "MALFORMED_REQUEST");
      }
    }
  }
  // The new contents are in logical order alone.
  Replace(MakeDocuments(60, 2));
  ExpectUnknown(Scan("", false, logical));
  ExpectUnknown(Scan("", true, stored));
  ExpectUnknown(Scan(Uuid(), false, logical));
  for (const v1::ListDocumentsRequest& list : lists) {
    ExpectUnknown(List(list, response));
  }
  write(1);
  EXPECT_THAT(Reload()[0], HasSubstr("replaced"));
  EXPECT_TRUE(Scan(uuid, false, logical).ok());
  EXPECT_TRUE(Scan(uuid, true, stored).ok());
  for (const v1::ListDocumentsRequest& list : lists) {
    EXPECT_TRUE(List(list, response).ok());
  }
}

// A document's id and ordinal, or a common prefix.
using Entry = std::pair<std::string, std::optional<uint64_t>>;

std::vector<Entry> ListLevel(const std::vector<TestDocument>& documents,
                             const std::string& prefix,
                             const std::string& delimiter) {
  std::vector<Entry> entries;
  for (size_t i = 0; i < documents.size(); ++i) {
    const std::string& id = documents[i].id;
    if (!id.starts_with(prefix)) {
      continue;
    }
    const size_t found = id.find(delimiter, prefix.size());
    entries.emplace_back(
        found == std::string::npos
            ? Entry(id, i)
            : Entry(id.substr(0, found + delimiter.size()), std::nullopt));
  }
  std::sort(entries.begin(), entries.end());
  entries.erase(std::unique(entries.begin(), entries.end()), entries.end());
  return entries;
}

TEST_F(ServerContentsTest, ListsByDelimiterAndPage) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937_64 random(seed);
  // Repeated ids and such that are not UTF-8 come about.
  const std::string letters("ab//\xC3\xFF");
  std::vector<TestDocument> documents(400);
  for (TestDocument& document : documents) {
    for (size_t size = random() % 9; size > 0; --size) {
      document.id += letters[random() % letters.size()];
    }
  }
  WriteArchive(archive_path(), documents);
  StartServer();
  for (int round = 0; round < 60; ++round) {
    const std::string& id = documents[random() % documents.size()].id;
    v1::ListDocumentsRequest request;
    request.set_archive("docs");
    request.set_prefix(id.substr(0, random() % (id.size() + 1)));
    request.set_delimiter(
        std::vector<std::string>{"/", "//", "\xFF", "a/"}[random() % 4]);
    std::vector<Entry> listed;
    v1::ListDocumentsResponse response;
    do {
      const size_t page_size = 1 + random() % 9;
      request.set_page_size(static_cast<uint32_t>(page_size));
      ASSERT_TRUE(List(request, response).ok());
      std::vector<Entry> page;
      for (const v1::Document& document : response.documents()) {
        page.emplace_back(document.id(), document.ordinal());
      }
      for (const std::string& prefix : response.common_prefixes()) {
        page.emplace_back(prefix, std::nullopt);
      }
      EXPECT_TRUE(std::is_sorted(response.common_prefixes().begin(),
                                 response.common_prefixes().end()));
      std::sort(page.begin(), page.end());
      EXPECT_TRUE(page.size() == page_size || !response.has_next_page_token());
      listed.insert(listed.end(), page.begin(), page.end());
      request.set_page_token(response.next_page_token());
    } while (response.has_next_page_token());
    EXPECT_EQ(listed,
              ListLevel(documents, request.prefix(), request.delimiter()));
  }
}

TEST_F(ServerContentsTest, RefusesWhatIsNoDelimiter) {
  WriteArchive(archive_path(), MakeDocuments(3, 1));
  StartServer();
  v1::ListDocumentsResponse response;
  v1::ListDocumentsRequest request;
  request.set_archive("docs");
  for (const size_t size : {size_t{0}, size_t{257}}) {
    request.set_delimiter(std::string(size, '/'));
    const grpc::Status status = List(request, response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(ReasonIn(status), "MALFORMED_REQUEST");
    EXPECT_THAT(status.error_message(),
                HasSubstr(absl::StrCat("delimiter has ", size, " bytes")));
  }
  request.set_delimiter(std::string(256, '/'));
  EXPECT_TRUE(List(request, response).ok());
  request.set_first_ordinal(0);
  EXPECT_EQ(List(request, response).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

// Long prefixes count towards the size of a page as ids do.
TEST_F(ServerContentsTest, PagesOfLongPrefixesEndEarly) {
  constexpr size_t kPrefixSizeBytes = 50'000;
  constexpr size_t kPrefixCount = 30;
  std::vector<TestDocument> documents;
  for (size_t i = 0; i < kPrefixCount; ++i) {
    const std::string id =
        absl::StrCat(i + 100, std::string(kPrefixSizeBytes, 'p'), "/page");
    documents.push_back({id, "text"});
  }
  WriteArchive(archive_path(), documents);
  StartServer();
  v1::ListDocumentsRequest request;
  request.set_archive("docs");
  request.set_delimiter("/");
  v1::ListDocumentsResponse response;
  size_t count = 0;
  do {
    ASSERT_TRUE(List(request, response).ok());
    EXPECT_LE(response.ByteSizeLong(), size_t{1'200'000});
    count += static_cast<size_t>(response.common_prefixes_size());
    request.set_page_token(response.next_page_token());
  } while (response.has_next_page_token());
  EXPECT_EQ(count, kPrefixCount);
}

}  // namespace
}  // namespace quire
