// SPDX-License-Identifier: GPL-3.0-or-later
//
// Tests external events: damage, reload, drain, health, clients that do not
// read.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpcpp/client_context.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"

#include "proto/error_details.h"

#include "codecs/base/checksum.h"
#include "codecs/base/mutex.h"
#include "server/archive/archive.h"
#include "server/service/testing/server_fixture.h"

#include "grpc/grpc.h"

namespace quire {
namespace {

// Returns the value of a line of /metrics; 0 if there is none.
uint64_t MetricIn(const std::string& metrics, const std::string& name) {
  const size_t at = metrics.find("\n" + name + " ");
  return at == std::string::npos ? 0
                                 : static_cast<uint64_t>(std::stod(
                                       metrics.substr(at + name.size() + 2)));
}

class ServerLifeTest : public ServerTest {
 protected:
  grpc::Status ReadRange(uint64_t offset, uint64_t size_bytes,
                         std::string* data) {
    v1::ReadRequest request;
    request.set_archive("docs");
    request.mutable_range()->set_offset(offset);
    request.mutable_range()->set_size_bytes(size_bytes);
    v1::ReadResponse response;
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    const grpc::Status status = stub().Read(&context, request, &response);
    *data = response.data();
    return status;
  }

  // Returns the first page of /metrics for which `holds` is true, or the last
  // one after two minutes, which is enough on any machine.
  std::string AwaitMetrics(absl::FunctionRef<bool(const std::string&)> holds) {
    const absl::Time give_up = absl::Now() + absl::Minutes(2);
    for (;;) {
      std::string metrics = HttpGet(server().metrics_address(), "/metrics");
      if (holds(metrics) || absl::Now() > give_up) {
        return metrics;
      }
      absl::SleepFor(absl::Milliseconds(2));
    }
  }

  // Flips a bit of a block of the first segment on disk.
  void DamageBlock(uint32_t block_index) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive,
                               Archive::Open(archive_path()));
    const Extent extent = archive->BlockExtent({0, block_index});
    std::fstream file(archive_path() + "/segment-00000000",
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(extent.offset.value + 20));
    const char byte = static_cast<char>(file.get() ^ 0x10);
    file.seekp(static_cast<std::streamoff>(extent.offset.value + 20));
    file.put(byte);
  }
};

TEST_F(ServerLifeTest, NamesADamagedBlockAndServesTheOthers) {
  const std::vector<TestDocument> documents = MakeDocuments(60, 5);
  const std::string all = Concatenate(documents);
  WriteArchive(archive_path(), documents);
  DamageBlock(3);
  StartServer();
  std::string data;
  const grpc::Status status = ReadRange(3 * 16384 + 5, 10, &data);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DATA_LOSS);
  EXPECT_EQ(ReasonIn(status), "BLOCK_DAMAGED");
  EXPECT_NE(status.error_message().find("block 3 of segment 0"),
            std::string::npos)
      << status.error_message();
  // The error states the damaged part of the range: the rest can be read.
  const grpc::Status wide = ReadRange(2 * 16384 + 100, 2 * 16384, &data);
  const std::optional<ErrorDetails> details =
      ParseErrorDetails(wide.error_details());
  ASSERT_TRUE(details.has_value());
  EXPECT_EQ(details->metadata.at("before_size_bytes"), "16284");
  EXPECT_EQ(details->metadata.at("damaged_size_bytes"), "16384");
  EXPECT_TRUE(ReadRange(0, 3 * 16384, &data).ok());
  EXPECT_TRUE(data == all.substr(0, 3 * 16384));
  EXPECT_TRUE(ReadRange(4 * 16384, all.size() - 4 * 16384, &data).ok());
  EXPECT_TRUE(data == all.substr(4 * 16384));

  // A batch loses only that item.
  grpc::ClientContext context;
  const auto stream = stub().BatchRead(&context);
  v1::BatchReadRequest request;
  request.set_archive("docs");
  for (uint64_t block = 0; block < 10; ++block) {
    v1::BatchItem* item = request.add_items();
    item->set_tag(block);
    item->mutable_range()->set_offset(block * 16384);
    item->mutable_range()->set_size_bytes(16384);
  }
  ASSERT_TRUE(stream->Write(request));
  ASSERT_TRUE(stream->WritesDone());
  int good_count = 0;
  for (v1::BatchReadResponse response; stream->Read(&response);) {
    for (const v1::BatchResult& result : response.results()) {
      if (result.tag() == 3) {
        EXPECT_EQ(result.status().reason(), v1::BLOCK_DAMAGED);
      } else {
        EXPECT_TRUE(result.data() == all.substr(result.tag() * 16384, 16384));
        ++good_count;
      }
    }
  }
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(good_count, 9);
}

TEST_F(ServerLifeTest, HandsOutTheDictionary) {
  const std::vector<TestDocument> documents = MakeDocuments(40, 6);
  WriteArchive(archive_path(), documents, "rlz");
  StartServer();
  grpc::ClientContext list_context;
  v1::ListArchivesResponse list;
  ASSERT_TRUE(stub().ListArchives(&list_context, {}, &list).ok());
  const v1::ArchiveDescription& description = list.archives(0);
  ASSERT_TRUE(description.has_dictionary_hash());
  const std::string expected = Concatenate(documents).substr(0, 100000);
  EXPECT_EQ(description.dictionary_size_bytes(), expected.size());

  v1::GetDictionaryRequest request;
  request.set_hash(description.dictionary_hash());
  request.set_offset(10);
  grpc::ClientContext context;
  const auto reader = stub().GetDictionary(&context, request);
  std::string got;
  for (v1::GetDictionaryResponse response; reader->Read(&response);) {
    EXPECT_EQ(response.offset(), 10 + got.size());
    EXPECT_EQ(response.size_bytes(), expected.size());
    EXPECT_EQ(response.checksum(), Checksum64(AsBytes(response.data())));
    got += response.data();
  }
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_TRUE(got == expected.substr(10));

  request.set_hash("0000000000000000");
  grpc::ClientContext other;
  v1::GetDictionaryResponse response;
  const auto missing = stub().GetDictionary(&other, request);
  EXPECT_FALSE(missing->Read(&response));
  const grpc::Status status = missing->Finish();
  EXPECT_EQ(ReasonIn(status), "DICTIONARY_NOT_FOUND");
}

TEST_F(ServerLifeTest, ReloadReplacesChangedArchivesUnderCalls) {
  const std::vector<TestDocument> before = MakeDocuments(400, 7);
  const std::vector<TestDocument> after = MakeDocuments(100, 8);
  WriteArchive(archive_path(), before);
  StartServer();
  // A call that began before the reload keeps its archive.
  v1::ScanRequest request;
  request.set_archive("docs");
  grpc::ClientContext context;
  const auto reader = stub().Scan(&context, request);
  v1::ScanResponse response;
  ASSERT_TRUE(reader->Read(&response));
  std::string got = response.data();
  const std::string token = response.resume_token();

  ASSERT_EQ(Reload().size(), 1u);
  EXPECT_THAT(Reload()[0], ::testing::HasSubstr("unchanged"));
  WriteArchive(archive_path(), after);
  EXPECT_THAT(Reload()[0], ::testing::HasSubstr("replaced"));

  while (reader->Read(&response)) {
    got += response.data();
  }
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_TRUE(got == Concatenate(before));

  std::string data;
  const std::string all = Concatenate(after);
  EXPECT_TRUE(ReadRange(0, 100000, &data).ok());
  EXPECT_TRUE(data == all.substr(0, 100000));
  // The old token belongs to the replaced contents.
  request.set_resume_token(token);
  grpc::ClientContext resumed;
  const auto refused = stub().Scan(&resumed, request);
  EXPECT_FALSE(refused->Read(&response));
  EXPECT_EQ(refused->Finish().error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);

  // If opening fails, the archive stays unchanged.
  std::filesystem::remove(archive_path() + "/MANIFEST");
  EXPECT_THAT(Reload()[0], ::testing::HasSubstr("stays unchanged"));
  EXPECT_TRUE(ReadRange(5, 1000, &data).ok());
  EXPECT_TRUE(data == all.substr(5, 1000));
}

// The estimate may belong to an earlier archive than the one being opened.
TEST_F(ServerLifeTest, ReloadRefusesWhatTakesMoreThanItsEstimate) {
  const std::vector<TestDocument> many = DocumentsOfRandomIds(30'000);
  const std::vector<TestDocument> few = MakeDocuments(60, 5);
  const std::string all = Concatenate(few);
  WriteArchive(archive_path(), few);
  bool is_reload = false;
  ServerOptions options;
  options.memory_bytes =
      LeastMemoryBytes({archive_path()}, /*can_reload=*/true);
  options.before_opening = [&](const std::string& /*name*/) {
    if (is_reload) {
      WriteArchive(archive_path(), many);
    }
  };
  StartServer(std::move(options));
  is_reload = true;
  // Other files than those of the estimate.
  WriteArchive(archive_path(), few);
  EXPECT_THAT(Reload()[0],
              ::testing::AllOf(::testing::HasSubstr("stays unchanged"),
                               ::testing::HasSubstr("it needs")));
  std::string data;
  EXPECT_TRUE(ReadRange(5, 1000, &data).ok());
  EXPECT_TRUE(data == all.substr(5, 1000));
}

TEST_F(ServerLifeTest, TellsOfADamagedBlockOnceAndTakesUpItsRepair) {
  const std::vector<TestDocument> documents = MakeDocuments(60, 5);
  const std::string all = Concatenate(documents);
  WriteArchive(archive_path(), documents);
  DamageBlock(3);
  Mutex mutex;
  std::vector<std::string> reports;
  ServerOptions options;
  options.report_damage = [&](const std::string& message) {
    MutexLock lock(&mutex);
    reports.push_back(message);
  };
  StartServer(options);
  std::string data;
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(ReadRange(3 * 16384, 10, &data).ok());
  }
  {
    MutexLock lock(&mutex);
    ASSERT_EQ(reports.size(), 1u);
    EXPECT_THAT(reports[0], ::testing::HasSubstr(absl::StrCat(
                                "archive docs: block 3 of ", archive_path(),
                                "/segment-00000000 is damaged")));
  }
  WriteArchive(archive_path(), documents);
  EXPECT_THAT(
      Reload()[0],
      ::testing::AllOf(::testing::HasSubstr("same contents in new files"),
                       ::testing::HasSubstr("were not checked")));
  EXPECT_TRUE(ReadRange(3 * 16384, 10, &data).ok());
  EXPECT_EQ(data, all.substr(3 * 16384, 10));
}

TEST_F(ServerLifeTest, TellsOnceOfEachBlockPastTheEndOfATruncatedFile) {
  const std::vector<TestDocument> documents = MakeDocuments(60, 5);
  WriteArchive(archive_path(), documents);
  Mutex mutex;
  std::vector<std::string> reports;
  ServerOptions options;
  options.metrics_address = "127.0.0.1:0";
  options.report_damage = [&](const std::string& message) {
    MutexLock lock(&mutex);
    reports.push_back(message);
  };
  StartServer(options);
  const std::string file = absl::StrCat(archive_path(), "/segment-00000000");
  std::filesystem::resize_file(file, 1000);
  std::string data;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(ReadRange(3 * 16384, 10, &data).error_code(),
              grpc::StatusCode::DATA_LOSS);
  }
  {
    MutexLock lock(&mutex);
    EXPECT_THAT(reports,
                ::testing::ElementsAre(::testing::AllOf(
                    ::testing::HasSubstr(absl::StrCat(
                        "archive docs: block 3 of ", file, " is damaged")),
                    ::testing::HasSubstr("file ends early"))));
  }
  const std::string counted = "quire_block_failures_total 3";
  EXPECT_THAT(AwaitMetrics([&](const std::string& page) {
                return absl::StrContains(page, counted);
              }),
              ::testing::HasSubstr(counted));
}

TEST_F(ServerLifeTest, SilentBatchesHoldNoMemory) {
  const std::vector<TestDocument> documents = MakeDocuments(60, 5);
  WriteArchive(archive_path(), documents);
  ServerOptions options;
  options.metrics_address = "127.0.0.1:0";
  StartServer(options);
  // More than the server's memory would allow if each held a window.
  constexpr int kStreamCount = 90;
  std::deque<grpc::ClientContext> contexts;
  std::vector<std::unique_ptr<
      grpc::ClientReaderWriter<v1::BatchReadRequest, v1::BatchReadResponse>>>
      streams;
  for (int i = 0; i < kStreamCount; ++i) {
    streams.push_back(stub().BatchRead(&contexts.emplace_back()));
    // Half of them are silent from the start, half after an answer.
    if (i % 2 == 0) {
      continue;
    }
    v1::BatchReadRequest request;
    request.set_archive("docs");
    request.add_items()->mutable_range()->set_size_bytes(100);
    ASSERT_TRUE(streams.back()->Write(request));
    v1::BatchReadResponse response;
    ASSERT_TRUE(streams.back()->Read(&response)) << "stream " << i;
    EXPECT_EQ(response.results(0).data().size(), 100u);
  }
  const std::string idle = "quire_in_flight_bytes 0";
  EXPECT_THAT(AwaitMetrics([&](const std::string& page) {
                return absl::StrContains(page, idle);
              }),
              ::testing::HasSubstr(idle));
  // They still work.
  for (const auto& stream : streams) {
    EXPECT_TRUE(stream->WritesDone());
    v1::BatchReadResponse response;
    EXPECT_FALSE(stream->Read(&response));
    EXPECT_TRUE(stream->Finish().ok());
  }
}

TEST_F(ServerLifeTest, EndsCallsWhoseClientStopsReading) {
  const std::vector<TestDocument> documents = MakeDocuments(2000, 9);
  WriteArchive(archive_path(), documents, "copy");
  ServerOptions options;
  options.stall_limit = absl::Milliseconds(200);
  options.metrics_address = "127.0.0.1:0";
  StartServer(options);
  v1::ScanRequest request;
  request.set_archive("docs");
  grpc::ClientContext context;
  // The client does not read: flow control fills up, and the server ends the
  // call.
  const auto reader = stub().Scan(&context, request);
  const std::string ended =
      "quire_calls_total{code=\"CANCELLED\",method=\"Scan\"} 1";
  const std::string stalled = "quire_stalled_calls_total 1";
  // The memory is returned shortly after the call is counted as ended.
  const std::string idle = "quire_in_flight_bytes 0";
  EXPECT_THAT(AwaitMetrics([&](const std::string& page) {
                return absl::StrContains(page, ended) &&
                       absl::StrContains(page, stalled) &&
                       absl::StrContains(page, idle);
              }),
              ::testing::AllOf(::testing::HasSubstr(ended),
                               ::testing::HasSubstr(stalled),
                               ::testing::HasSubstr(idle)));
  uint64_t got_bytes = 0;
  for (v1::ScanResponse response; reader->Read(&response);) {
    got_bytes += response.data().size();
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_LT(got_bytes, Concatenate(documents).size());
}

TEST_F(ServerLifeTest, AScanThatNobodyReadsHoldsItsWindow) {
  const std::vector<TestDocument> documents = MakeDocuments(2000, 10);
  const std::string all = Concatenate(documents);
  WriteArchive(archive_path(), documents, "copy");
  ServerOptions options;
  options.stall_limit = absl::Minutes(30);
  options.metrics_address = "127.0.0.1:0";
  StartServer(options);
  v1::ScanRequest request;
  request.set_archive("docs");
  grpc::ClientContext context;
  const auto reader = stub().Scan(&context, request);
  // Decoded bytes are sent or in the window. A page of metrics is not a
  // snapshot, and the scan may still be moving: wait until flow control has
  // stopped it, and a while longer.
  uint64_t decoded_bytes = 0;
  int unchanged_count = 0;
  AwaitMetrics([&](const std::string& page) {
    const uint64_t now = MetricIn(page, "quire_decoded_bytes_total");
    const uint64_t window = MetricIn(page, "quire_in_flight_bytes");
    const bool is_bounded =
        window > 0 &&
        now <=
            MetricIn(page, "quire_sent_bytes_total{method=\"Scan\"}") + window;
    unchanged_count =
        is_bounded && now > 0 && now == decoded_bytes ? unchanged_count + 1 : 0;
    decoded_bytes = now;
    return unchanged_count == 20;
  });
  EXPECT_EQ(unchanged_count, 20);
  EXPECT_LT(decoded_bytes, all.size());
  std::string got;
  for (v1::ScanResponse response; reader->Read(&response);) {
    got += response.data();
  }
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(got, all);
}

TEST_F(ServerLifeTest, DrainsAndRefuses) {
  WriteArchive(archive_path(), MakeDocuments(20, 10));
  StartServer();
  std::string data;
  EXPECT_TRUE(ReadRange(0, 10, &data).ok());
  server().Shutdown(absl::Seconds(5));
  v1::GetArchiveRequest request;
  request.set_archive("docs");
  v1::GetArchiveResponse response;
  grpc::ClientContext context;
  EXPECT_EQ(stub().GetArchive(&context, request, &response).error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

// SIGTERM during the drain delay, and the end of the server: both threads use
// gRPC's server.
TEST_F(ServerLifeTest, IsWithdrawnWhileAndAfterItIsShutDown) {
  WriteArchive(archive_path(), MakeDocuments(2, 1));
  StartServer();
  {
    const std::jthread stopper([&] { server().Shutdown(absl::Seconds(30)); });
    server().AnnounceShutdown();
  }
  server().AnnounceShutdown();
  server().EndDrain();
  server().CheckAlive([] { ADD_FAILURE() << "a server that is gone answers"; });
  EXPECT_TRUE(Reload().empty());
}

// The last call would close its connection, and end gRPC's threads, on one of
// them.
// Shutting gRPC down takes up to 10 seconds.
TEST_F(ServerLifeTest, TheLastServerLeavesGrpcInitialised) {
  WriteArchive(archive_path(), MakeDocuments(20, 10));
  ServerOptions options;
  options.listen_address = "127.0.0.1:0";
  options.archives = {{.name = "docs", .path = archive_path()}};
  // In a process of its own: other tests may keep gRPC initialised.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        QUIRE_EXPECT_OK(Server::Start(options));
        std::exit(grpc_is_initialized() != 0 ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(ServerLifeTest, EndsItsCallsToItselfBeforeItIsGone) {
  WriteArchive(archive_path(), MakeDocuments(2, 1));
  ServerOptions options;
  options.archives = {{"docs", archive_path()}};
  options.listen_address = "127.0.0.1:0";
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> answer_count = 0;
    {
      const auto own = Server::Start(options);
      QUIRE_ASSERT_OK(own);
      for (int i = 0; i < 8; ++i) {
        (*own)->CheckAlive([&answer_count] { ++answer_count; });
      }
      if (round % 2 == 0) {
        (*own)->Shutdown(absl::ZeroDuration());
      }
    }
    // Nothing is written to it afterwards.
    EXPECT_LE(answer_count, 8);
  }
}

TEST_F(ServerLifeTest, ServesOnAUnixSocketAndKeepsItsPlace) {
  const std::vector<TestDocument> documents = MakeDocuments(20, 11);
  WriteArchive(archive_path(), documents);
  ServerOptions options;
  options.archives = {{"docs", archive_path()}};
  options.listen_address = absl::StrCat("unix:", directory(), "/socket");
  StartServer(options);
  std::string data;
  EXPECT_TRUE(ReadRange(3, 500, &data).ok());
  EXPECT_EQ(data, Concatenate(documents).substr(3, 500));
  EXPECT_THAT(Server::Start(options),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        ::testing::HasSubstr("answers there already")));
}

// Returns a client's socket that gRPC did not create; -1 on error.
int ConnectRaw(const std::string& address) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  place.sin_port = htons(
      static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  // Longer than any machine needs, and less than gRPC's limit on idleness.
  const timeval patience = {.tv_sec = 120, .tv_usec = 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  if (connect(fd, reinterpret_cast<const sockaddr*>(&place), sizeof(place)) !=
      0) {
    close(fd);
    return -1;
  }
  return fd;
}

TEST_F(ServerLifeTest, EndsConnectionsWhoseHeadersDoNotEnd) {
  const std::vector<TestDocument> documents = MakeDocuments(20, 11);
  WriteArchive(archive_path(), documents);
  ServerOptions options;
  options.archives = {{"docs", archive_path()}};
  // Dual-stack, so that gRPC and the system name IPv4 clients differently.
  options.listen_address = "[::]:0";
  options.metrics_address = "127.0.0.1:0";
  options.silence_limit = absl::Milliseconds(300);
  StartServer(options);
  const auto channel = grpc::CreateChannel(
      absl::StrCat("127.0.0.1",
                   server().address().substr(server().address().rfind(':'))),
      grpc::InsecureChannelCredentials());
  const auto stub = v1::Archive::NewStub(channel);
  v1::ListArchivesResponse response;
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  ASSERT_TRUE(stub->ListArchives(&context, {}, &response).ok());

  const int silent = ConnectRaw(server().address());
  ASSERT_GE(silent, 0);
  // HTTP/2's preface, no settings, and the first of 100 bytes of a request.
  const std::string text(
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
      "\0\0\0\4\0\0\0\0\0"
      "\0\0\144\1\4\0\0\0\1"
      "\203\206",
      24 + 9 + 9 + 2);
  ASSERT_EQ(write(silent, text.data(), text.size()),
            static_cast<ssize_t>(text.size()));
  char buffer[1024];
  ssize_t size = 0;
  do {
    size = read(silent, buffer, sizeof(buffer));
  } while (size > 0);
  EXPECT_EQ(size, 0);
  close(silent);
  // The connection with a call is still there.
  const std::string counted =
      "\nquire_connections_refused_total{reason=\"silent\"} 1\n";
  EXPECT_THAT(HttpGet(server().metrics_address(), "/metrics"),
              ::testing::HasSubstr(counted));
  EXPECT_EQ(channel->GetState(false), GRPC_CHANNEL_READY);
}

TEST_F(ServerLifeTest, AnswersItselfByTheSocketOfClients) {
  WriteArchive(archive_path(), MakeDocuments(20, 11));
  for (const std::string& address :
       {std::string("127.0.0.1:0"), std::string("0.0.0.0:0"),
        std::string("localhost:0"),
        absl::StrCat("unix:", directory(), "/socket")}) {
    ServerOptions options;
    options.archives = {{"docs", archive_path()}};
    options.listen_address = address;
    options.metrics_address = "127.0.0.1:0";
    StartServer(options);
    EXPECT_EQ(HttpGet(server().metrics_address(), "/readyz"), "ready\n")
        << address;
    // It does not count as a client.
    EXPECT_THAT(HttpGet(server().metrics_address(), "/metrics"),
                ::testing::HasSubstr("\nquire_connections 0\n"));
    StopServer();
  }
}

TEST_F(ServerLifeTest, RefusesWhatCannotWork) {
  WriteArchive(archive_path(), MakeDocuments(20, 12));
  StartServer();
  ServerOptions options;
  options.archives = {{"docs", archive_path()}};
  options.listen_address = server().address();
  EXPECT_THAT(Server::Start(options),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        ::testing::HasSubstr("in use")));
  options.listen_address = "127.0.0.1:0";
  options.memory_bytes = 10 << 20;
  EXPECT_THAT(Server::Start(options),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        ::testing::HasSubstr("are needed")));
  options.memory_bytes.reset();
  options.archives.push_back({"docs", archive_path()});
  EXPECT_THAT(Server::Start(options),
              HasCode(absl::StatusCode::kInvalidArgument));
  options.archives = {{"x", directory() + "/absent.quire"}};
  EXPECT_THAT(Server::Start(options), HasCode(absl::StatusCode::kNotFound));
  options.archives.clear();
  EXPECT_THAT(Server::Start(options),
              HasCode(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace quire
