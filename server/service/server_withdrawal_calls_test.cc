// SPDX-License-Identifier: GPL-3.0-or-later
//
// Documents that are withdrawn while calls read them.
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "grpcpp/client_context.h"

#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"
#include "server/service/testing/server_fixture.h"

namespace quire {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

class ServerWithdrawalDuringCallsTest : public ServerTest {
 protected:
  // Serves the archive at its path.
  void Start() {
    std::ofstream(rules_path()).flush();
    ServerOptions options;
    options.withdrawn_path = rules_path();
    StartServer(options);
  }

  void Start(const std::vector<TestDocument>& documents) {
    WriteArchive(archive_path(), documents);
    Start();
  }

  // Applies a rule for the archive: "id a block".
  void Withdraw(const std::string& rule) {
    std::ofstream(rules_path()) << "docs " << rule << "\n";
    EXPECT_THAT(Reload(), Contains(HasSubstr(" by 1 rule")));
  }

  void WithdrawNothing() {
    std::ofstream(rules_path()).flush();
    Reload();
  }

  std::string rules_path() const { return directory() + "/withdrawn"; }

  // Text without zeros that no buffer between server and client holds whole.
  const std::string large_ = std::string(size_t{48} << 20, 'x');
};

TEST_F(ServerWithdrawalDuringCallsTest, AStreamOfADocumentEnds) {
  Start({{.id = "other", .text = "text"}, {.id = "large", .text = large_}});
  for (const bool by_id : {true, false}) {
    const bool is_block = by_id;
    v1::ReadRequest request;
    request.set_archive("docs");
    if (by_id) {
      request.mutable_document()->set_id("large");
    } else {
      request.mutable_document()->set_ordinal(1);
    }
    grpc::ClientContext context;
    const auto stream = stub().ReadStream(&context, request);
    v1::ReadStreamResponse response;
    ASSERT_TRUE(stream->Read(&response));
    Withdraw(is_block ? "id large block" : "where size > 4 exclude");
    std::string text = response.data();
    while (stream->Read(&response)) {
      text += response.data();
    }
    const grpc::Status status = stream->Finish();
    EXPECT_EQ(status.error_code(), is_block
                                       ? grpc::StatusCode::PERMISSION_DENIED
                                       : grpc::StatusCode::NOT_FOUND);
    EXPECT_EQ(ReasonIn(status),
              is_block ? "DOCUMENT_WITHDRAWN" : "DOCUMENT_NOT_FOUND");
    EXPECT_LT(text.size(), large_.size());
    EXPECT_EQ(text.find('\0'), std::string::npos);
    WithdrawNothing();
  }
}

TEST_F(ServerWithdrawalDuringCallsTest, AStreamOfAnotherDocumentGoesOn) {
  Start({{.id = "other", .text = "text"}, {.id = "large", .text = large_}});
  v1::ReadRequest request;
  request.set_archive("docs");
  request.mutable_document()->set_id("large");
  grpc::ClientContext context;
  const auto stream = stub().ReadStream(&context, request);
  v1::ReadStreamResponse response;
  ASSERT_TRUE(stream->Read(&response));
  Withdraw("id other exclude");
  std::string text = response.data();
  while (stream->Read(&response)) {
    text += response.data();
  }
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(text == large_, true);
}

// Reads the first message of a scan in stored order, or all that follow a
// token.
class ServerWithdrawalScanTest : public ServerWithdrawalDuringCallsTest {
 protected:
  grpc::Status Scan(std::string& token, std::string* text = nullptr) {
    v1::ScanRequest request;
    request.set_archive("docs");
    request.set_stored_order(true);
    const bool is_first = token.empty();
    if (!is_first) {
      request.set_resume_token(token);
    }
    grpc::ClientContext context;
    const auto stream = stub().Scan(&context, request);
    v1::ScanResponse response;
    while (stream->Read(&response)) {
      token = response.resume_token();
      if (text != nullptr) {
        *text += response.data();
      }
      if (is_first) {
        context.TryCancel();
        break;
      }
    }
    return stream->Finish();
  }
};

TEST_F(ServerWithdrawalScanTest, ResumesInTheOrderOfTheToken) {
  const std::vector<TestDocument> documents = MakeDocuments(300, 1);
  WriteArchive(archive_path(), documents, "zstd", "", /*is_reordered=*/true);
  Start();
  std::string stored_token;
  Scan(stored_token);
  ASSERT_NE(stored_token, "");
  Withdraw(absl::StrCat("id ", documents[3].id, " block"));
  std::string token = stored_token;
  const grpc::Status status = Scan(token);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(ReasonIn(status), "DOCUMENT_WITHDRAWN");
  EXPECT_THAT(status.error_message(), HasSubstr("scan again"));
  // While documents are withdrawn, such a scan is in logical order.
  std::string logical_token;
  std::string text;
  Scan(logical_token, &text);
  ASSERT_NE(logical_token, "");
  WithdrawNothing();
  EXPECT_TRUE(Scan(logical_token, &text).ok());
  EXPECT_EQ(text.size(), Concatenate(documents).size());
  token = stored_token;
  EXPECT_TRUE(Scan(token).ok());
}

TEST_F(ServerWithdrawalDuringCallsTest, ItemsOfABatchAreRefused) {
  std::vector<TestDocument> documents;
  for (int i = 0; i < 50; ++i) {
    documents.push_back({.id = absl::StrCat(i % 2 == 0 ? "in" : "out", i),
                         .text = std::string(64 << 10, 'x')});
  }
  Start(documents);
  grpc::ClientContext context;
  const auto stream = stub().BatchRead(&context);
  constexpr uint64_t kCount = 800;
  v1::BatchReadRequest request;
  request.set_archive("docs");
  for (uint64_t tag = 0; tag < kCount; ++tag) {
    v1::BatchItem& item = *request.add_items();
    item.set_tag(tag);
    item.mutable_document()->set_id(documents[tag % documents.size()].id);
  }
  ASSERT_TRUE(stream->Write(request));
  stream->WritesDone();
  v1::BatchReadResponse response;
  ASSERT_TRUE(stream->Read(&response));
  Withdraw("prefix out block");
  uint64_t count = 0;
  uint64_t refused_count = 0;
  do {
    for (const v1::BatchResult& result : response.results()) {
      ++count;
      const std::string& id = documents[result.tag() % documents.size()].id;
      if (result.status().code() != 0) {
        ++refused_count;
        EXPECT_EQ(result.status().reason(), v1::DOCUMENT_WITHDRAWN);
        EXPECT_EQ(id[0], 'o');
        EXPECT_EQ(result.data(), "");
      } else {
        EXPECT_EQ(result.data() == documents[0].text, true) << id;
      }
    }
  } while (stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(count, kCount);
  EXPECT_GT(refused_count, 0u);
}

// Items planned before and after a withdrawal take the same blocks in two
// forms.
TEST_F(ServerWithdrawalDuringCallsTest, ABatchOfStoredBlocksGoesOn) {
  std::vector<TestDocument> documents;
  std::mt19937_64 random(1);
  for (int i = 0; i < 50; ++i) {
    std::string text(64 << 10, '\0');
    std::ranges::generate(
        text, [&random] { return static_cast<char>('!' + random() % 64); });
    documents.push_back({.id = absl::StrCat("in", i), .text = text});
  }
  documents.push_back({.id = "out", .text = "text"});
  Start(documents);
  grpc::ClientContext context;
  const auto stream = stub().BatchRead(&context);
  constexpr uint64_t kCount = 800;
  constexpr uint64_t kLaterCount = 50;
  v1::BatchReadRequest request;
  request.set_archive("docs");
  request.add_accepted_encodings(v1::WIRE_ENCODING_STORED);
  const auto add_items = [&](uint64_t tag, uint64_t count) {
    for (; count > 0; --count, ++tag) {
      v1::BatchItem& item = *request.add_items();
      item.set_tag(tag);
      item.mutable_document()->set_ordinal(tag % 50);
    }
  };
  add_items(0, kCount);
  ASSERT_TRUE(stream->Write(request));
  v1::BatchReadResponse response;
  ASSERT_TRUE(stream->Read(&response));
  Withdraw("id out block");
  request.Clear();
  add_items(kCount, kLaterCount);
  ASSERT_TRUE(stream->Write(request));
  stream->WritesDone();
  uint64_t count = 0;
  uint64_t later_count = 0;
  do {
    for (const v1::BatchResult& result : response.results()) {
      ++count;
      EXPECT_EQ(result.status().code(), 0);
      EXPECT_EQ(Checksum64(AsBytes(result.data())), result.checksum());
      if (result.tag() >= kCount) {
        ++later_count;
        EXPECT_EQ(result.encoding(), v1::WIRE_ENCODING_IDENTITY);
        EXPECT_TRUE(result.data() == documents[result.tag() % 50].text);
      }
    }
  } while (stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(count, kCount + kLaterCount);
  EXPECT_EQ(later_count, kLaterCount);
}

}  // namespace
}  // namespace quire
