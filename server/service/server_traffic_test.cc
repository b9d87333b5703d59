// SPDX-License-Identifier: GPL-3.0-or-later
//
// Tests the metrics of each archive and of connections.
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/client_context.h"
#include "grpcpp/create_channel.h"

#include "server/archive/archive.h"
#include "server/service/testing/server_fixture.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ServerTrafficTest : public ServerTest {
 protected:
  ServerTrafficTest() {
    WriteArchive(PathOf("a"), a_documents_);
    WriteArchive(PathOf("b"), b_documents_, "rlz", TrainTable(b_documents_));
  }

  std::string PathOf(const std::string& name) const {
    return absl::StrCat(directory(), "/", name, ".quire");
  }

  ServerOptions Options() const {
    ServerOptions options;
    options.archives = {{"a", PathOf("a")}, {"b", PathOf("b")}};
    options.metrics_address = "127.0.0.1:0";
    return options;
  }

  std::string UuidOf(const std::string& name) {
    return Archive::Open(PathOf(name)).value()->info().uuid;
  }

  // Returns the first page that has the line, or the last one after two
  // minutes: a call counts only when the server has finished it.
  std::string AwaitLine(const std::string& line) {
    const absl::Time give_up = absl::Now() + absl::Minutes(2);
    for (;;) {
      std::string page = HttpGet(server().metrics_address(), "/metrics");
      if (absl::StrContains(page, absl::StrCat("\n", line, "\n")) ||
          absl::Now() > give_up) {
        return page;
      }
      absl::SleepFor(absl::Milliseconds(2));
    }
  }

  void ExpectLine(const std::string& line) {
    EXPECT_TRUE(
        absl::StrContains(AwaitLine(line), absl::StrCat("\n", line, "\n")))
        << line;
  }

  void ExpectTraffic(const std::string& archive, uint64_t call_count,
                     uint64_t sent_bytes) {
    ExpectLine(absl::StrCat("quire_archive_calls_total{archive=\"", archive,
                            "\"} ", call_count));
    ExpectLine(absl::StrCat("quire_archive_sent_bytes_total{archive=\"",
                            archive, "\"} ", sent_bytes));
  }

  grpc::StatusCode Read(const std::string& archive, uint64_t ordinal) {
    v1::ReadRequest request;
    request.set_archive(archive);
    request.mutable_document()->set_ordinal(ordinal);
    v1::ReadResponse response;
    grpc::ClientContext context;
    return stub().Read(&context, request, &response).error_code();
  }

  v1::ArchiveDescription Describe(const std::string& archive) {
    v1::GetArchiveRequest request;
    request.set_archive(archive);
    v1::GetArchiveResponse response;
    grpc::ClientContext context;
    EXPECT_TRUE(stub().GetArchive(&context, request, &response).ok());
    description_bytes_ = response.ByteSizeLong();
    return response.archive();
  }

  // Returns the bytes of all messages.
  template <typename Request, typename Response, typename Start>
  uint64_t Receive(Start start, const Request& request) {
    grpc::ClientContext context;
    const std::unique_ptr<grpc::ClientReader<Response>> reader =
        (stub().*start)(&context, request);
    Response response;
    uint64_t size_bytes = 0;
    while (reader->Read(&response)) {
      size_bytes += response.data().size();
    }
    EXPECT_TRUE(reader->Finish().ok());
    return size_bytes;
  }

  // Size of the answer of the last Describe().
  uint64_t description_bytes_ = 0;
  const std::vector<TestDocument> a_documents_ = MakeDocuments(20, 1);
  const std::vector<TestDocument> b_documents_ = MakeDocuments(30, 2);
};

TEST_F(ServerTrafficTest, CountsTheTrafficOfEachArchive) {
  StartServer(Options());
  ExpectTraffic("a", 0, 0);
  ASSERT_EQ(Read("a", 6), grpc::StatusCode::OK);
  const uint64_t read_bytes = a_documents_[6].text.size();
  ASSERT_GT(read_bytes, 0u);
  ExpectTraffic("a", 1, read_bytes);
  EXPECT_EQ(Read("a", 1000), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(Read("absent", 3), grpc::StatusCode::NOT_FOUND);
  {
    grpc::ClientContext context;
    v1::ListArchivesResponse response;
    EXPECT_TRUE(stub().ListArchives(&context, {}, &response).ok());
  }
  ExpectLine("quire_call_duration_seconds_count{method=\"ListArchives\"} 1");
  ExpectLine("quire_call_duration_seconds_count{method=\"Read\"} 3");
  ExpectTraffic("a", 2, read_bytes);
  ExpectTraffic("b", 0, 0);

  v1::ScanRequest scan;
  scan.set_archive("b");
  const uint64_t text_bytes = Concatenate(b_documents_).size();
  EXPECT_EQ((Receive<v1::ScanRequest, v1::ScanResponse>(
                &v1::Archive::Stub::Scan, scan)),
            text_bytes);
  ExpectTraffic("b", 1, text_bytes);
  const v1::ArchiveDescription b = Describe("b");
  v1::GetDictionaryRequest dictionary;
  dictionary.set_hash(b.dictionary_hash());
  const uint64_t dictionary_bytes =
      Receive<v1::GetDictionaryRequest, v1::GetDictionaryResponse>(
          &v1::Archive::Stub::GetDictionary, dictionary);
  EXPECT_GT(dictionary_bytes, 0u);
  v1::GetSymbolTableRequest table;
  table.set_hash(b.symbol_table_hash());
  v1::GetSymbolTableResponse table_response;
  grpc::ClientContext context;
  EXPECT_TRUE(stub().GetSymbolTable(&context, table, &table_response).ok());
  ExpectLine(absl::StrCat("quire_sent_bytes_total{method=\"GetSymbolTable\"} ",
                          table_response.ByteSizeLong()));
  ExpectTraffic("b", 4,
                text_bytes + dictionary_bytes + description_bytes_ +
                    table_response.ByteSizeLong());
  EXPECT_THAT(AwaitLine("quire_archives{state=\"open\"} 2"),
              Not(HasSubstr("archive=\"absent\"")));
}

TEST_F(ServerTrafficTest, EachBucketOfAHistogramCountsTheOnesBelow) {
  StartServer(Options());
  ASSERT_EQ(Read("a", 6), grpc::StatusCode::OK);
  const std::string page =
      AwaitLine("quire_archive_calls_total{archive=\"a\"} 1");
  uint64_t count = 0;
  for (const absl::string_view line : absl::StrSplit(page, '\n')) {
    if (absl::StartsWith(line, "quire_drive_read_duration_seconds_bucket")) {
      uint64_t up_to_here = 0;
      EXPECT_TRUE(
          absl::SimpleAtoi(line.substr(line.rfind(' ') + 1), &up_to_here));
      EXPECT_GE(up_to_here, count) << line;
      count = up_to_here;
    }
  }
  EXPECT_GT(count, 0u);
}

TEST_F(ServerTrafficTest, CountsABatchOnceAndAllItsAnswers) {
  StartServer(Options());
  grpc::ClientContext context;
  const auto stream = stub().BatchRead(&context);
  uint64_t size_bytes = 0;
  for (const uint64_t ordinal : {2u, 5u}) {
    v1::BatchReadRequest request;
    request.set_archive("a");
    v1::BatchItem& item = *request.add_items();
    item.set_tag(ordinal);
    item.mutable_document()->set_ordinal(ordinal);
    ASSERT_TRUE(stream->Write(request));
    v1::BatchReadResponse response;
    ASSERT_TRUE(stream->Read(&response));
    // Bytes count while the stream is open.
    size_bytes += a_documents_[ordinal].text.size();
    ExpectTraffic("a", 0, size_bytes);
  }
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
  ExpectTraffic("a", 1, size_bytes);
}

TEST_F(ServerTrafficTest, TellsContentsOfArchivesThatComeAndGo) {
  const auto info = [](const std::string& name, const std::string& uuid) {
    return absl::StrCat("quire_archive_info{archive=\"", name, "\",uuid=\"",
                        uuid, "\"} 1");
  };
  const std::string a_uuid = UuidOf("a");
  const std::string b_uuid = UuidOf("b");
  ASSERT_NE(a_uuid, b_uuid);
  StartServer(Options());
  ASSERT_EQ(Read("a", 6), grpc::StatusCode::OK);
  ExpectLine(info("a", a_uuid));
  ExpectLine(info("b", b_uuid));
  ExpectTraffic("a", 1, a_documents_[6].text.size());

  // Other contents under the name, and the other archive is removed.
  changes_.archives = {{"a", PathOf("b")}};
  Reload();
  EXPECT_THAT(AwaitLine(info("a", b_uuid)),
              AllOf(HasSubstr(info("a", b_uuid)), Not(HasSubstr(a_uuid)),
                    Not(HasSubstr("archive=\"b\""))));
  ASSERT_EQ(Read("a", 4), grpc::StatusCode::OK);
  ExpectTraffic("a", 2,
                a_documents_[6].text.size() + b_documents_[4].text.size());
}

TEST_F(ServerTrafficTest, CountsConnections) {
  StartServer(Options());
  ASSERT_EQ(Read("a", 1), grpc::StatusCode::OK);
  ExpectLine("quire_connections 1");
  {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const std::shared_ptr<grpc::Channel> second = grpc::CreateCustomChannel(
        server().address(), grpc::InsecureChannelCredentials(), arguments);
    ASSERT_TRUE(
        second->WaitForConnected(absl::ToChronoTime(absl::InfiniteFuture())));
    ExpectLine("quire_connections 2");
  }
  ExpectLine("quire_connections 1");
}

}  // namespace
}  // namespace quire
