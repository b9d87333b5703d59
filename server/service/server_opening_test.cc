// SPDX-License-Identifier: GPL-3.0-or-later
//
// Tests a server that is reachable while its archives are being opened, and
// reloads of many archives.
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/security/credentials.h"

#include "proto/error_details.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/mutex.h"
#include "codecs/base/unique_fd.h"
#include "server/service/limits/memory_plan.h"
#include "server/service/testing/server_fixture.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

// Blocks openings until they are released, by name.
class Gate {
 public:
  void Pass(const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    has_come_ = true;
    changed_.NotifyAll();
    while (!is_open_ && !passing_.contains(name)) {
      changed_.Wait(&mutex_);
    }
  }

  // Waits until one opening is at the gate.
  void AwaitFirst() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    while (!has_come_) {
      changed_.Wait(&mutex_);
    }
  }

  void Let(const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    passing_.insert(name);
    changed_.NotifyAll();
  }

  void Open() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    is_open_ = true;
    changed_.NotifyAll();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool has_come_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_open_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<std::string> passing_ ABSL_GUARDED_BY(mutex_);
};

// A socket for an address 127.0.0.1:PORT.
class LoopbackSocket {
 public:
  explicit LoopbackSocket(const std::string& address)
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    place_.sin_family = AF_INET;
    place_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    place_.sin_port = htons(static_cast<uint16_t>(
        std::stoi(address.substr(address.rfind(':') + 1))));
    const int on = 1;
    setsockopt(fd_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  }

  int fd() const { return fd_.get(); }

  // Calls connect() or bind(); returns errno.
  int Apply(int (*call)(int, const sockaddr*, socklen_t)) const {
    return call(fd_.get(), reinterpret_cast<const sockaddr*>(&place_),
                sizeof(place_)) == 0
               ? 0
               : errno;
  }

 private:
  const UniqueFd fd_;
  sockaddr_in place_{};
};

class ServerOpeningTest : public ServerTest {
 protected:
  ~ServerOpeningTest() override {
    gate_.Open();
    opener_ = {};
  }

  // "a" and "b": the same documents, one with a dictionary and a symbol table.
  // They wait at the gate.
  void BeginOpening(ServerOptions options = {}) {
    documents_ = MakeDocuments(20, 30);
    WriteArchive(directory() + "/a.quire", documents_);
    WriteArchive(directory() + "/b.quire", documents_, "rlz",
                 TrainTable(documents_));
    options.archives = {{"a", directory() + "/a.quire"},
                        {"b", directory() + "/b.quire"}};
    options.metrics_address = "127.0.0.1:0";
    options.before_opening = [this](const std::string& name) {
      gate_.Pass(name);
    };
    ListenServer(options);
    opener_ = std::jthread([this] { opened_ = server().OpenArchives(); });
    gate_.AwaitFirst();
  }

  // Joins the opening thread and returns its result.
  absl::Status AwaitOpened() {
    opener_.join();
    return opened_;
  }

  grpc::Status Read(const std::string& archive) {
    v1::ReadRequest request;
    request.set_archive(archive);
    request.mutable_document()->set_ordinal(1);
    v1::ReadResponse response;
    grpc::ClientContext context;
    const grpc::Status status = stub().Read(&context, request, &response);
    if (status.ok()) {
      EXPECT_EQ(response.data(), documents_[1].text);
    }
    return status;
  }

  // Returns the status of grpc.health.v1: 1 is SERVING, 2 is NOT_SERVING.
  // Debian has no stubs for it; both messages have one field.
  int Health(const std::string& service) {
    grpc::GenericStub generic(grpc::CreateChannel(
        server().address(), grpc::InsecureChannelCredentials()));
    grpc::Slice slice(absl::StrCat(
        service.empty()
            ? ""
            : std::string{'\x0a', static_cast<char>(service.size())},
        service));
    const grpc::ByteBuffer request(&slice, 1);
    grpc::ClientContext context;
    grpc::CompletionQueue queue;
    const auto call = generic.PrepareUnaryCall(
        &context, "/grpc.health.v1.Health/Check", request, &queue);
    call->StartCall();
    grpc::ByteBuffer response;
    grpc::Status status;
    call->Finish(&response, &status, this);
    void* tag = nullptr;
    bool ok = false;
    EXPECT_TRUE(queue.Next(&tag, &ok));
    EXPECT_TRUE(status.ok()) << status.error_message();
    grpc::Slice answer;
    EXPECT_TRUE(response.TrySingleSlice(&answer).ok());
    return answer.size() == 2 ? answer.begin()[1] : 0;
  }

  std::string Metrics() {
    return HttpGet(server().metrics_address(), "/metrics");
  }

  std::vector<TestDocument> documents_;
  Gate gate_;
  absl::Status opened_;
  std::jthread opener_;
};

TEST_F(ServerOpeningTest, ArchivesAreUnavailableUntilTheyAreOpen) {
  BeginOpening();
  for (const std::string name : {"a", "b"}) {
    const grpc::Status status = Read(name);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
    EXPECT_EQ(ReasonIn(status), "ARCHIVE_OPENING");
    EXPECT_TRUE(
        ParseErrorDetails(status.error_details())->retry_delay.has_value());
  }
  EXPECT_EQ(Read("c").error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(Read("c").error_message(), ::testing::HasSubstr("a, b"));
  EXPECT_THAT(Metrics(),
              ::testing::HasSubstr("quire_archives{state=\"opening\"} 2"));

  gate_.Let("b");
  while (!Read("b").ok()) {
    std::this_thread::yield();
  }
  EXPECT_EQ(Read("a").error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(server().opening_progress().open_count, 1u);
  EXPECT_EQ(server().opening_progress().archive_count, 2u);

  gate_.Open();
  QUIRE_EXPECT_OK(AwaitOpened());
  EXPECT_TRUE(Read("a").ok());
  EXPECT_THAT(Metrics(),
              ::testing::AllOf(
                  ::testing::HasSubstr("quire_archives{state=\"open\"} 2"),
                  ::testing::HasSubstr("quire_archives{state=\"opening\"} 0")));
}

TEST_F(ServerOpeningTest, HealthFollows) {
  BeginOpening();
  const std::string service = "quire.v1.Archive";
  for (const std::string& name :
       {std::string(), service, service + "/a", service + "/b"}) {
    EXPECT_EQ(Health(name), 2) << name;
  }
  gate_.Let("a");
  while (Health(service + "/a") != 1) {
    std::this_thread::yield();
  }
  EXPECT_EQ(Health(service + "/b"), 2);
  EXPECT_EQ(Health(service), 2);
  EXPECT_EQ(Health(""), 2);
  const auto probe = [this](const std::string& path) {
    return HttpGet(server().metrics_address(), path);
  };
  EXPECT_THAT(probe("/readyz"), ::testing::HasSubstr("being opened"));
  EXPECT_EQ(probe("/healthz"), "alive\n");
  gate_.Open();
  QUIRE_EXPECT_OK(AwaitOpened());
  for (const std::string& name :
       {std::string(), service, service + "/a", service + "/b"}) {
    EXPECT_EQ(Health(name), 1) << name;
  }
  EXPECT_EQ(probe("/readyz"), "ready\n");
}

TEST_F(ServerOpeningTest, ListsWhatIsToCome) {
  BeginOpening();
  const auto list = [&] {
    grpc::ClientContext context;
    v1::ListArchivesResponse response;
    EXPECT_TRUE(stub().ListArchives(&context, {}, &response).ok());
    return response;
  };
  const v1::ListArchivesResponse before = list();
  ASSERT_EQ(before.archives_size(), 2);
  v1::GetArchiveRequest one;
  one.set_archive("b");
  v1::GetArchiveResponse response;
  grpc::ClientContext context;
  EXPECT_TRUE(stub().GetArchive(&context, one, &response).ok());
  EXPECT_EQ(response.archive().state(), v1::ARCHIVE_STATE_OPENING);

  // Tables of an archive that is still opening.
  v1::GetSymbolTableRequest table;
  table.set_hash(response.archive().symbol_table_hash());
  v1::GetSymbolTableResponse table_response;
  grpc::ClientContext table_context;
  EXPECT_EQ(
      ReasonIn(stub().GetSymbolTable(&table_context, table, &table_response)),
      "ARCHIVE_OPENING");
  v1::GetDictionaryRequest dictionary;
  dictionary.set_hash(response.archive().dictionary_hash());
  grpc::ClientContext dictionary_context;
  v1::GetDictionaryResponse part;
  const auto reader = stub().GetDictionary(&dictionary_context, dictionary);
  EXPECT_FALSE(reader->Read(&part));
  EXPECT_EQ(ReasonIn(reader->Finish()), "ARCHIVE_OPENING");

  gate_.Open();
  QUIRE_EXPECT_OK(AwaitOpened());
  // Everything except the state was known before.
  v1::ListArchivesResponse after = list();
  ASSERT_EQ(after.archives_size(), 2);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(before.archives(i).state(), v1::ARCHIVE_STATE_OPENING);
    EXPECT_EQ(after.archives(i).state(), v1::ARCHIVE_STATE_OPEN);
    after.mutable_archives(i)->set_state(v1::ARCHIVE_STATE_OPENING);
    EXPECT_EQ(after.archives(i).SerializeAsString(),
              before.archives(i).SerializeAsString());
  }
}

TEST_F(ServerOpeningTest, ListensWhenAllAreOpen) {
  ServerOptions options;
  options.listen_when_open = true;
  BeginOpening(options);
  gate_.Let("a");
  while (server().opening_progress().open_count == 0) {
    std::this_thread::yield();
  }
  EXPECT_FALSE(server().opening_progress().is_reachable);
  const LoopbackSocket client(server().address());
  EXPECT_EQ(client.Apply(connect), ECONNREFUSED);
  EXPECT_THAT(HttpGet(server().metrics_address(), "/readyz"),
              ::testing::HasSubstr("being opened"));
  gate_.Open();
  QUIRE_EXPECT_OK(AwaitOpened());
  EXPECT_TRUE(server().opening_progress().is_reachable);
  EXPECT_EQ(HttpGet(server().metrics_address(), "/readyz"), "ready\n");
  EXPECT_TRUE(Read("a").ok());
}

TEST_F(ServerOpeningTest, FailsIfAnotherListensOnItsAddressMeanwhile) {
  ServerOptions options;
  options.listen_when_open = true;
  BeginOpening(options);
  const LoopbackSocket other(server().address());
  ASSERT_EQ(other.Apply(bind), 0);
  ASSERT_EQ(listen(other.fd(), 1), 0);
  gate_.Open();
  EXPECT_THAT(AwaitOpened(), FailsWith(absl::StatusCode::kFailedPrecondition,
                                       ::testing::HasSubstr("is in use")));
  EXPECT_FALSE(server().opening_progress().is_reachable);
}

TEST_F(ServerOpeningTest, ShutdownEndsIt) {
  BeginOpening();
  const std::jthread stopper([&] { server().Shutdown(absl::Seconds(30)); });
  while (ReasonIn(Read("a")) != "DRAINING") {
    std::this_thread::yield();
  }
  // Both wait at the gate, then find that they are no longer wanted.
  gate_.Open();
  EXPECT_THAT(AwaitOpened(), HasCode(absl::StatusCode::kCancelled));
  EXPECT_EQ(server().opening_progress().open_count, 0u);
}

TEST_F(ServerOpeningTest, NothingIsOpenedAfterAShutdown) {
  documents_ = MakeDocuments(20, 34);
  WriteArchive(archive_path(), documents_);
  ListenServer();
  server().Shutdown(absl::ZeroDuration());
  EXPECT_THAT(server().OpenArchives(), HasCode(absl::StatusCode::kCancelled));
}

TEST_F(ServerOpeningTest, AnArchiveThatCannotBeOpenedIsNamed) {
  documents_ = MakeDocuments(20, 31);
  WriteArchive(directory() + "/a.quire", documents_, "rlz");
  // Same size, so that only opening detects it.
  for (const auto& entry :
       std::filesystem::directory_iterator(directory() + "/a.quire")) {
    if (absl::StartsWith(entry.path().filename().string(), "dictionary")) {
      FILE* file = fopen(entry.path().c_str(), "r+");
      ASSERT_NE(file, nullptr);
      fseek(file, -1, SEEK_END);
      const int last = fgetc(file);
      fseek(file, -1, SEEK_END);
      fputc(last ^ 1, file);
      fclose(file);
    }
  }
  ServerOptions options;
  options.archives = {{"a", directory() + "/a.quire"}};
  ListenServer(options);
  EXPECT_THAT(server().OpenArchives(),
              FailsWith(absl::StatusCode::kDataLoss,
                        ::testing::HasSubstr("a.quire/dictionary")));
}

// `quired build --force` while the server starts.
TEST_F(ServerOpeningTest, ALargerArchiveIsOpenedIfItFits) {
  documents_ = MakeDocuments(5, 35);
  const std::vector<TestDocument> many = DocumentsOfRandomIds(30'000);
  const auto start = [&](uint64_t memory_bytes) {
    WriteArchive(archive_path(), documents_);
    ServerOptions options;
    options.memory_bytes = memory_bytes;
    options.before_opening = [&](const std::string&) {
      WriteArchive(archive_path(), many);
    };
    ListenServer(options);
    return server().OpenArchives();
  };
  QUIRE_EXPECT_OK(start(kGiB));
  WriteArchive(archive_path(), documents_);
  EXPECT_THAT(
      start(LeastMemoryBytes({archive_path()}, /*can_reload=*/false)),
      FailsWith(absl::StatusCode::kFailedPrecondition,
                ::testing::AllOf(
                    ::testing::HasSubstr("replaced by a larger archive"),
                    ::testing::HasSubstr("restart with more --memory"))));
}

TEST_F(ServerOpeningTest, UnchangedArchivesAreNotOpenedAnew) {
  documents_ = MakeDocuments(20, 32);
  ServerOptions options;
  for (int i = 0; i < 30; ++i) {
    const std::string name = absl::StrCat("n", i);
    WriteArchive(absl::StrCat(directory(), "/", name), documents_);
    options.archives.push_back({name, absl::StrCat(directory(), "/", name)});
  }
  std::atomic<int> opened = 0;
  options.before_opening = [&](const std::string&) { ++opened; };
  StartServer(options);
  EXPECT_EQ(opened, 30);
  EXPECT_THAT(Reload(), ::testing::ElementsAre(
                            ::testing::StartsWith("30 archives: unchanged;")));
  EXPECT_EQ(opened, 30);
  WriteArchive(absl::StrCat(directory(), "/n7"), MakeDocuments(9, 33));
  EXPECT_THAT(Reload(), ::testing::ElementsAre(
                            "archive n7: replaced, 9 documents",
                            ::testing::StartsWith("29 archives: unchanged;")));
  EXPECT_EQ(opened, 31);
}

}  // namespace
}  // namespace quire
