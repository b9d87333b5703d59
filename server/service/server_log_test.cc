// SPDX-License-Identifier: GPL-3.0-or-later
//
// Tests the lines of the access log for calls of each kind.
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "grpcpp/client_context.h"

#include "server/service/testing/server_fixture.h"

#include "nlohmann/json.hpp"

namespace quire {
namespace {

constexpr char kTrace[] = "4bf92f3577b34da6a3ce929d0e0e4736";

class ServerLogTest : public ServerTest {
 protected:
  void Start() {
    documents_ = MakeDocuments(20, 1);
    WriteArchive(archive_path(), documents_);
    ServerOptions options;
    options.call_log.path = directory() + "/access.log";
    options.call_log.documents = CallLogOptions::Documents::kPlain;
    StartServer(options);
  }

  // Stops the server and returns the lines of one method's calls, in order.
  std::vector<nlohmann::json> LinesOf(const std::string& method) {
    StopServer();
    std::vector<nlohmann::json> lines;
    std::ifstream file(directory() + "/access.log");
    for (std::string text; std::getline(file, text);) {
      nlohmann::json line = nlohmann::json::parse(text);
      if (line["method"] == method) {
        lines.push_back(std::move(line));
      }
    }
    return lines;
  }

  v1::ReadRequest RequestFor(const std::string& id) {
    v1::ReadRequest request;
    request.set_archive("docs");
    request.mutable_document()->set_id(id);
    return request;
  }

  std::vector<TestDocument> documents_;
};

TEST_F(ServerLogTest, SaysWhatWasReadAndInWhichTrace) {
  Start();
  const TestDocument& document = documents_[3];
  {
    grpc::ClientContext context;
    context.AddMetadata("traceparent",
                        std::string("00-") + kTrace + "-00f067aa0ba902b7-01");
    v1::ReadResponse response;
    ASSERT_TRUE(stub().Read(&context, RequestFor(document.id), &response).ok());
  }
  {
    grpc::ClientContext context;
    context.AddMetadata("traceparent", "00-malformed");
    v1::ReadResponse response;
    EXPECT_EQ(
        stub().Read(&context, RequestFor("absent"), &response).error_code(),
        grpc::StatusCode::NOT_FOUND);
  }
  // In the order in which calls end.
  std::map<std::string, nlohmann::json> lines;
  for (nlohmann::json& line : LinesOf("Read")) {
    const std::string asked = line.value("document", "");
    lines[asked] = std::move(line);
  }
  ASSERT_EQ(lines.size(), 2U);
  const nlohmann::json good = lines[document.id];
  const nlohmann::json failed = lines["absent"];
  ASSERT_FALSE(good.is_null());
  ASSERT_FALSE(failed.is_null());
  EXPECT_EQ(good["archive"], "docs");
  EXPECT_EQ(good["bytes"], document.text.size());
  EXPECT_EQ(good["code"], "OK");
  EXPECT_EQ(good["trace_id"], kTrace);
  EXPECT_EQ(good["parent_id"], "00f067aa0ba902b7");
  EXPECT_EQ(good["address"], "ipv4:127.0.0.1");
  EXPECT_FALSE(good.contains("identity"));
  EXPECT_FALSE(good.contains("reason"));
  EXPECT_LE(good["read_us"].get<int64_t>() + good["send_us"].get<int64_t>(),
            good["duration_us"].get<int64_t>());
  EXPECT_EQ(failed["bytes"], 0);
  EXPECT_EQ(failed["code"], "NOT_FOUND");
  EXPECT_EQ(failed["reason"], "DOCUMENT_NOT_FOUND");
  EXPECT_FALSE(failed.contains("trace_id"));
  EXPECT_FALSE(failed.contains("read_us"));
}

TEST_F(ServerLogTest, SaysWhatBlocksWaitedFor) {
  Start();
  for (int i = 0; i < 2; ++i) {
    grpc::ClientContext context;
    v1::ReadRequest request;
    request.set_archive("docs");
    request.mutable_range()->set_size_bytes(10);
    v1::ReadResponse response;
    ASSERT_TRUE(stub().Read(&context, request, &response).ok());
  }
  std::vector<nlohmann::json> lines = LinesOf("Read");
  ASSERT_EQ(lines.size(), 2U);
  if (!lines[0].contains("fetches")) {
    std::swap(lines[0], lines[1]);
  }
  // One block, which the second call finds in the cache.
  const nlohmann::json& first = lines[0];
  ASSERT_EQ(first.value("fetches", 0), 1);
  EXPECT_LE(first["queue_us"].get<int64_t>() +
                first["device_us"].get<int64_t>() +
                first["decode_us"].get<int64_t>(),
            first["read_us"].get<int64_t>());
  EXPECT_GT(
      first["device_us"].get<int64_t>() + first["decode_us"].get<int64_t>(), 0);
  EXPECT_FALSE(lines[1].contains("fetches"));
}

TEST_F(ServerLogTest, ListsHaveTheSizeOfTheirAnswer) {
  Start();
  v1::ListDocumentsRequest request;
  request.set_archive("docs");
  v1::ListDocumentsResponse response;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(stub().ListDocuments(&context, request, &response).ok());
  }
  const std::vector<nlohmann::json> lines = LinesOf("ListDocuments");
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0]["bytes"], response.ByteSizeLong());
}

TEST_F(ServerLogTest, AStreamIsOneLine) {
  Start();
  {
    grpc::ClientContext context;
    v1::ScanRequest request;
    request.set_archive("docs");
    const auto stream = stub().Scan(&context, request);
    for (v1::ScanResponse response; stream->Read(&response);) {
    }
    ASSERT_TRUE(stream->Finish().ok());
  }
  const std::vector<nlohmann::json> lines = LinesOf("Scan");
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0]["bytes"], Concatenate(documents_).size());
  EXPECT_EQ(lines[0]["archive"], "docs");
  EXPECT_LE(lines[0]["send_us"].get<int64_t>(),
            lines[0]["duration_us"].get<int64_t>());
  EXPECT_GE(lines[0].value("fetches", 0), 1);
}

}  // namespace
}  // namespace quire
