// SPDX-License-Identifier: GPL-3.0-or-later
//
// Archives that grow while they are served: calls, tokens and batches of an
// earlier state, and the memory of a reload.
#include <algorithm>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "grpcpp/client_context.h"

#include "codecs/payload/payload_codec.h"
#include "server/archive/archive_writer.h"
#include "server/archive/files/archive_change.h"
#include "server/service/testing/server_fixture.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

constexpr size_t kBlockSizeBytes = size_t{16} << 10;

class ServerGrowthTest : public ServerTest {
 protected:
  v1::ArchiveDescription Describe() {
    grpc::ClientContext context;
    v1::GetArchiveRequest request;
    request.set_archive("docs");
    v1::GetArchiveResponse response;
    EXPECT_TRUE(stub().GetArchive(&context, request, &response).ok());
    return response.archive();
  }

  // Appends a document to the archive. If it `is_reordered`, the second half of
  // its text is stored first.
  void Append(const std::string& id, const std::string& text,
              bool is_reordered = false, bool joins = false) {
    auto change = ArchiveChange::Begin(archive_path());
    ASSERT_TRUE(change.ok()) << change.status();
    const auto writer = ArchiveWriter::Append(*std::move(change), "test");
    Write(id, text, is_reordered, *writer);
    if (joins) {
      const auto codec = MakePayloadCodec(ParseCodecSpec("copy").value(),
                                          nullptr, CodecUse::kEncodeAndDecode);
      const auto count =
          writer->JoinSegments(**codec, uint64_t{1} << 30, nullptr);
      ASSERT_TRUE(count.ok()) << count.status();
      EXPECT_EQ(*count, 2u);
    }
    QUIRE_ASSERT_OK(writer->Commit());
  }

  static void Write(const std::string& id, const std::string& text,
                    bool is_reordered, ArchiveWriter& writer) {
    const NewDocument added = {
        .id = id,
        .size_bytes = text.size(),
        .capture_time_ms = static_cast<int64_t>(text.size())};
    std::string stored = text;
    if (is_reordered) {
      const size_t half = text.size() / 2;
      stored = text.substr(half) + text.substr(0, half);
      DocumentIndexBuilder index;
      QUIRE_ASSERT_OK(index.Add(added));
      LayoutSection layout = {
          .stored_text_size_bytes = text.size(),
          .runs = {{.size_bytes = half, .stored_offset = text.size() - half},
                   {.size_bytes = text.size() - half, .stored_offset = 0}},
          .checksums = {}};
      QUIRE_ASSERT_OK(writer.SetLayout(std::move(layout), std::move(index)));
    } else {
      QUIRE_ASSERT_OK(writer.AddDocument(added));
    }
    for (size_t at = 0; at < stored.size(); at += kBlockSizeBytes) {
      QUIRE_ASSERT_OK(writer.AppendBlock(
          AsBytes(stored).subspan(
              at, std::min(kBlockSizeBytes, stored.size() - at)),
          {}));
    }
  }

  void Grow(const std::string& id, bool is_reordered = false) {
    ASSERT_NO_FATAL_FAILURE(Append(id, std::string(30000, 'n'), is_reordered));
    EXPECT_THAT(Reload()[0], HasSubstr("has grown"));
  }

  // Reads at most `count_max` messages of a scan. Adds their text, or the sizes
  // of their places.
  grpc::Status Scan(v1::ScanRequest request, int count_max, std::string& text,
                    uint64_t& places_size_bytes, std::string& token) {
    grpc::ClientContext context;
    request.set_archive("docs");
    if (!token.empty()) {
      request.set_resume_token(token);
    }
    const auto reader = stub().Scan(&context, request);
    v1::ScanResponse response;
    while (count_max-- > 0 && reader->Read(&response)) {
      token = response.resume_token();
      text += response.data();
      for (const v1::ScanPlace& place : response.places()) {
        places_size_bytes += place.size_bytes();
      }
    }
    if (count_max < 0) {
      context.TryCancel();
    }
    return reader->Finish();
  }

  // Returns the ids and prefixes of a whole listing; `between` is called after
  // each page.
  std::vector<std::string> List(v1::ListDocumentsRequest request,
                                const std::function<void()>& between = {}) {
    std::vector<std::string> listed;
    request.set_archive("docs");
    request.set_page_size(7);
    v1::ListDocumentsResponse response;
    do {
      grpc::ClientContext context;
      response.Clear();
      const grpc::Status status =
          stub().ListDocuments(&context, request, &response);
      EXPECT_TRUE(status.ok()) << status.error_message();
      for (const v1::Document& document : response.documents()) {
        listed.push_back(absl::StrCat(document.ordinal(), " ", document.id()));
      }
      listed.insert(listed.end(), response.common_prefixes().begin(),
                    response.common_prefixes().end());
      request.set_page_token(response.next_page_token());
      if (between) {
        between();
      }
    } while (response.has_next_page_token());
    return listed;
  }

  const std::vector<TestDocument> documents_ = MakeDocuments(150, 1);
};

TEST_F(ServerGrowthTest, OnlyGetArchiveShowsTheHistory) {
  WriteArchive(archive_path(), documents_);
  StartServer();
  const v1::ArchiveDescription first = Describe();
  EXPECT_EQ(first.history_size(), 0);
  Grow("x");
  Grow("y");
  const v1::ArchiveDescription now = Describe();
  ASSERT_EQ(now.history_size(), 2);
  EXPECT_EQ(now.history(0).uuid(), first.uuid());
  EXPECT_EQ(now.history(0).size_bytes(), first.size_bytes());
  EXPECT_EQ(now.history(1).document_count(), 151u);
  EXPECT_EQ(now.document_count(), 152u);
  grpc::ClientContext context;
  v1::ListArchivesResponse response;
  EXPECT_TRUE(stub().ListArchives(&context, {}, &response).ok());
  ASSERT_EQ(response.archives_size(), 1);
  EXPECT_EQ(response.archives(0).history_size(), 0);
  EXPECT_EQ(response.archives(0).uuid(), now.uuid());
}

TEST_F(ServerGrowthTest, ScansEndWhereTheyWouldHaveEnded) {
  for (const bool is_reordered : {false, true}) {
    SCOPED_TRACE(is_reordered);
    WriteArchive(archive_path(), documents_, "zstd", "", is_reordered);
    if (is_reordered) {
      EXPECT_THAT(Reload()[0], HasSubstr("replaced"));
    } else {
      StartServer();
    }
    const uint64_t size_bytes = Concatenate(documents_).size();
    v1::ScanRequest request;
    request.set_stored_order(true);
    std::string text;
    uint64_t places = 0;
    std::string token;
    Scan(request, 1, text, places, token);
    ASSERT_LT(text.size(), size_bytes);
    // The new segment has a layout, whether the earlier ones have or not.
    Grow("x", /*is_reordered=*/true);
    EXPECT_TRUE(Scan(request, 1000, text, places, token).ok());
    EXPECT_EQ(places, is_reordered ? size_bytes : 0);
    if (!is_reordered) {
      EXPECT_EQ(text, Concatenate(documents_));
    }
    // With the uuid alone.
    const std::string uuid = Describe().history(0).uuid();
    request.set_stored_order(false);
    request.set_archive_uuid(uuid);
    text.clear();
    token.clear();
    EXPECT_TRUE(Scan(request, 1000, text, places, token).ok());
    EXPECT_EQ(text, Concatenate(documents_));
    // A token and another state.
    request.set_archive_uuid(Describe().uuid());
    const grpc::Status status = Scan(request, 1, text, places, token);
    EXPECT_EQ(ReasonIn(status), "MALFORMED_REQUEST");
    EXPECT_THAT(status.error_message(), HasSubstr("another state"));
  }
}

TEST_F(ServerGrowthTest, AScanInAnOrderThatIsGoneStartsAgain) {
  WriteArchive(archive_path(), documents_, "copy", "", /*is_reordered=*/true);
  Append("x", std::string(30000, 'x'));
  StartServer();
  const uint64_t size_bytes = Describe().size_bytes();
  const std::string uuid = Describe().uuid();
  v1::ScanRequest request;
  request.set_stored_order(true);
  std::string text;
  uint64_t places = 0;
  std::string token;
  Scan(request, 1, text, places, token);
  EXPECT_GT(places, 0u);
  // The state of the token ends inside of the joined segment.
  Append("y", std::string(30000, 'y'), /*is_reordered=*/false, /*joins=*/true);
  EXPECT_THAT(Reload()[0], HasSubstr("has grown"));
  const std::string old_token = token;
  const grpc::Status status = Scan(request, 1, text, places, token);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(ReasonIn(status), "ARCHIVE_STATE_UNKNOWN");
  EXPECT_THAT(status.error_message(), HasSubstr("scan again"));
  // Without the token the order is logical.
  request.set_archive_uuid(uuid);
  text.clear();
  token.clear();
  places = 0;
  EXPECT_TRUE(Scan(request, 1000, text, places, token).ok());
  EXPECT_EQ(places, 0u);
  EXPECT_EQ(text.size(), size_bytes);
  // A request of logical order has never given such a token.
  request.set_stored_order(false);
  token = old_token;
  EXPECT_EQ(ReasonIn(Scan(request, 1, text, places, token)),
            "MALFORMED_REQUEST");
}

TEST_F(ServerGrowthTest, ListingsAreOfTheStateOfTheirFirstPage) {
  WriteArchive(archive_path(), documents_);
  StartServer();
  int count = 0;
  std::vector<v1::ListDocumentsRequest> requests(3);
  requests[1].set_delimiter("/");
  requests[2].set_first_ordinal(3);
  for (v1::ListDocumentsRequest& request : requests) {
    const std::string uuid = Describe().uuid();
    const std::vector<std::string> before = List(request);
    int page_count = 0;
    EXPECT_EQ(List(request,
                   [&] {
                     if (page_count++ < 2) {
                       ++count;
                       // Before and after all other ids.
                       Grow(absl::StrCat("!", count, "/x"));
                       Grow(absl::StrCat("~", count, "/x"));
                     }
                   }),
              before);
    EXPECT_GT(List(request).size(), before.size());
    request.set_archive_uuid(uuid);
    EXPECT_EQ(List(request), before);
  }
}

TEST_F(ServerGrowthTest, ABatchStaysInItsState) {
  WriteArchive(archive_path(), documents_);
  StartServer();
  for (const bool names_uuid : {false, true}) {
    const uint64_t count = Describe().document_count();
    grpc::ClientContext context;
    const auto stream = stub().BatchRead(&context);
    v1::BatchReadRequest request;
    request.set_archive("docs");
    if (names_uuid) {
      request.set_archive_uuid(Describe().uuid());
    }
    request.add_items()->mutable_document()->set_ordinal(0);
    ASSERT_TRUE(stream->Write(request));
    v1::BatchReadResponse response;
    ASSERT_TRUE(stream->Read(&response));
    Grow("x");
    request.clear_items();
    request.add_items()->mutable_document()->set_ordinal(count - 1);
    request.add_items()->mutable_document()->set_ordinal(count);
    request.mutable_items(1)->set_tag(1);
    ASSERT_TRUE(stream->Write(request));
    stream->WritesDone();
    std::vector<int> codes(2, -1);
    while (stream->Read(&response)) {
      for (const v1::BatchResult& result : response.results()) {
        codes[result.tag()] = result.status().code();
      }
    }
    EXPECT_TRUE(stream->Finish().ok());
    EXPECT_EQ(codes[0], 0);
    EXPECT_EQ(codes[1], static_cast<int>(grpc::StatusCode::NOT_FOUND));
  }
}

TEST_F(ServerGrowthTest, ReadsSeeTheStateThatTheyName) {
  WriteArchive(archive_path(), {{.id = "a", .text = "first"}});
  StartServer();
  const std::string uuid = Describe().uuid();
  ASSERT_NO_FATAL_FAILURE(Append("a", "second"));
  ASSERT_NO_FATAL_FAILURE(Append("b", "third"));
  EXPECT_THAT(Reload()[0], HasSubstr("has grown"));
  const auto read = [this](const std::string& id, const std::string& state) {
    grpc::ClientContext context;
    v1::ReadRequest request;
    request.set_archive("docs");
    request.mutable_document()->set_id(id);
    if (!state.empty()) {
      request.set_archive_uuid(state);
    }
    v1::ReadResponse response;
    const grpc::Status status = stub().Read(&context, request, &response);
    return status.ok() ? response.data() : ReasonIn(status);
  };
  EXPECT_EQ(read("a", uuid), "first");
  EXPECT_EQ(read("a", ""), "second");
  EXPECT_EQ(read("a", Describe().history(1).uuid()), "second");
  EXPECT_EQ(read("b", ""), "third");
  EXPECT_EQ(read("b", uuid), "DOCUMENT_NOT_FOUND");
  EXPECT_EQ(read("b", Describe().history(1).uuid()), "DOCUMENT_NOT_FOUND");
  v1::ReadRequest request;
  request.set_archive("docs");
  request.set_archive_uuid(uuid);
  request.mutable_range()->set_offset(4);
  request.mutable_range()->set_size_bytes(2);
  grpc::ClientContext context;
  v1::ReadResponse response;
  EXPECT_EQ(ReasonIn(stub().Read(&context, request, &response)),
            "RANGE_PAST_END");
}

TEST_F(ServerGrowthTest, ReadsTellTheStateAndItsZeros) {
  WriteArchive(archive_path(),
               {{.id = "a", .text = "first"}, {.id = "b", .text = "second"}});
  const std::string rules_path = directory() + "/withdrawn";
  std::ofstream(rules_path) << "";
  ServerOptions options;
  options.withdrawn_path = rules_path;
  StartServer(options);
  const std::string uuid = Describe().uuid();
  const auto read = [this](const std::string& state, bool by_name = false) {
    grpc::ClientContext context;
    v1::ReadRequest request;
    request.set_archive("docs");
    if (by_name) {
      request.mutable_document()->set_id("a");
    } else {
      request.mutable_range();
    }
    if (!state.empty()) {
      request.set_archive_uuid(state);
    }
    v1::ReadResponse response;
    EXPECT_TRUE(stub().Read(&context, request, &response).ok());
    EXPECT_EQ(response.archive_uuid(),
              state.empty() ? Describe().uuid() : std::string());
    return response.zeros_hash();
  };
  EXPECT_EQ(read(""), 0u);
  read("", /*by_name=*/true);
  ASSERT_NO_FATAL_FAILURE(Append("c", "third"));
  ASSERT_NO_FATAL_FAILURE(Append("d", "fourth"));
  std::ofstream(rules_path) << "docs id c block\n";
  Reload();
  const std::string middle = Describe().history(1).uuid();
  const uint64_t third = read("");
  EXPECT_NE(third, 0u);
  EXPECT_EQ(read(""), third);
  EXPECT_EQ(read(middle), third);
  EXPECT_EQ(read(uuid), 0u);
  EXPECT_EQ(read("", /*by_name=*/true), 0u);
  // Adjacent documents are one range, which ends with the state.
  std::ofstream(rules_path) << "docs id b exclude\ndocs id c block\n";
  Reload();
  const uint64_t second = read(uuid);
  EXPECT_NE(second, 0u);
  EXPECT_NE(read(""), third);
  EXPECT_NE(read(""), second);
  EXPECT_EQ(read(middle), read(""));
  std::ofstream(rules_path) << "docs id b block\n";
  Reload();
  EXPECT_EQ(read(uuid), second);
  EXPECT_EQ(read(""), second);
  std::ofstream(rules_path) << "";
  Reload();
  EXPECT_EQ(read(""), 0u);
}

// There is no memory for another such dictionary.
TEST_F(ServerGrowthTest, AReloadNeedsMemoryForNewPartsAlone) {
  const auto write = [this](char letter) {
    const auto context = std::make_shared<CodecContext>();
    context->dictionary = std::string(size_t{8} << 20, letter);
    ArchiveWriterOptions options;
    options.codec = ParseCodecSpec("rlz").value();
    options.block_size_bytes = kBlockSizeBytes;
    options.replace = true;
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const auto writer,
        ArchiveWriter::Create(archive_path(), options, context));
    Write("a", "text", /*is_reordered=*/false, *writer);
    QUIRE_ASSERT_OK(writer->Commit());
  };
  write('d');
  ServerOptions options;
  options.memory_bytes =
      LeastMemoryBytes({archive_path()}, /*can_reload=*/false) +
      (uint64_t{3} << 20);
  StartServer(options);
  for (int i = 0; i < 5; ++i) {
    Grow(absl::StrCat("x", i));
  }
  EXPECT_EQ(Describe().document_count(), 6u);
  // Another archive with such a dictionary does not fit.
  write('e');
  EXPECT_THAT(Reload()[0], HasSubstr("stays unchanged"));
  EXPECT_EQ(Describe().document_count(), 6u);
}

}  // namespace
}  // namespace quire
