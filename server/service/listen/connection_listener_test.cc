// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/listen/connection_listener.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "grpcpp/client_context.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/server_builder.h"

#include "proto/quire/v1/archive.grpc.pb.h"

#include "codecs/base/mutex.h"
#include "codecs/base/unique_fd.h"
#include "server/service/listen/listen_address.h"
#include "testing/base/status_matchers.h"
#include "testing/base/temporary_directory.h"

namespace quire {
namespace {

// Returns empty answers and records the callers.
class CallerLog : public v1::Archive::CallbackService {
 public:
  explicit CallerLog(const ConnectionTable& connections)
      : connections_(connections) {}

  grpc::ServerUnaryReactor* ListArchives(
      grpc::CallbackServerContext* context,
      const v1::ListArchivesRequest* /*request*/,
      v1::ListArchivesResponse* /*response*/) override {
    {
      MutexLock lock(&mutex_);
      peers_seen_.insert(context->peer());
      names_.insert(connections_.ClientOf(context->peer()));
    }
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  std::set<std::string> names() const {
    MutexLock lock(&mutex_);
    return names_;
  }

  size_t peer_count() const {
    MutexLock lock(&mutex_);
    return peers_seen_.size();
  }

 private:
  const ConnectionTable& connections_;
  mutable Mutex mutex_;
  std::set<std::string> names_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> peers_seen_ ABSL_GUARDED_BY(mutex_);
};

// Connects to 127.0.0.1:PORT or unix:PATH; returns errno.
int Connect(const std::string& target) {
  sockaddr_storage storage{};
  if (const auto path = UnixSocketPath(target); path.has_value()) {
    auto& address = reinterpret_cast<sockaddr_un&>(storage);
    address.sun_family = AF_UNIX;
    path->copy(address.sun_path, sizeof(address.sun_path) - 1);
  } else {
    auto& address = reinterpret_cast<sockaddr_in&>(storage);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(
        static_cast<uint16_t>(std::stoi(target.substr(target.rfind(':') + 1))));
  }
  const UniqueFd fd(socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return connect(fd.get(), reinterpret_cast<const sockaddr*>(&storage),
                 storage.ss_family == AF_UNIX ? sizeof(sockaddr_un)
                                              : sizeof(sockaddr_in)) == 0
             ? 0
             : errno;
}

class ConnectionListenerTest : public ::testing::Test {
 protected:
  const TemporaryDirectory directory_;
  const std::string path_ = directory_ / "socket";
  ConnectionTable connections_{{.client_connections_max = 100,
                                .crowded_descriptor = 10'000,
                                .last_descriptor = 10'000}};
};

TEST_F(ConnectionListenerTest, NamesAllConnectionsOfAUserAlike) {
  CallerLog service(connections_);
  QUIRE_ASSERT_OK_AND_ASSIGN(
      std::unique_ptr<ConnectionListener> listener,
      ConnectionListener::Open("unix:" + path_, connections_));
  grpc::ServerBuilder builder;
  builder.RegisterService(&service);
  listener->Prepare(builder, grpc::InsecureServerCredentials());
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  QUIRE_ASSERT_OK(listener->Serve(*server));
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (int i = 0; i < 3; ++i) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    channels.push_back(grpc::CreateCustomChannel(
        absl::StrCat("unix:", path_), grpc::InsecureChannelCredentials(),
        arguments));
    const auto stub = v1::Archive::NewStub(channels.back());
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    v1::ListArchivesResponse response;
    const grpc::Status status = stub->ListArchives(&context, {}, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
  }
  EXPECT_EQ(service.peer_count(), channels.size());
  EXPECT_EQ(service.names(),
            (std::set<std::string>{absl::StrCat("unix:user=", getuid())}));
  listener->Stop();
  EXPECT_FALSE(std::filesystem::exists(path_));
  server->Shutdown();
}

TEST_F(ConnectionListenerTest, ConnectsToItselfUntilItIsStopped) {
  CallerLog service(connections_);
  QUIRE_ASSERT_OK_AND_ASSIGN(
      std::unique_ptr<ConnectionListener> listener,
      ConnectionListener::Open("127.0.0.1:0", connections_));
  EXPECT_GT(listener->port(), 0);
  grpc::ServerBuilder builder;
  builder.RegisterService(&service);
  listener->Prepare(builder, grpc::InsecureServerCredentials());
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  QUIRE_ASSERT_OK(listener->Serve(*server));
  const auto call = [&] {
    absl::StatusOr<std::unique_ptr<OwnConnection>> own =
        listener->ConnectToSelf();
    if (!own.ok()) {
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, "");
    }
    grpc::ClientContext context;
    v1::ListArchivesResponse response;
    return v1::Archive::NewStub((*own)->channel())
        ->ListArchives(&context, {}, &response);
  };
  EXPECT_TRUE(call().ok());
  // It is not a client, so no limit counts it.
  EXPECT_EQ(connections_.Count(), 0u);
  listener->Stop();
  EXPECT_EQ(call().error_code(), grpc::StatusCode::UNAVAILABLE);
  server->Shutdown();
}

TEST_F(ConnectionListenerTest, RefusesClientsUntilItServes) {
  for (const std::string& address :
       {std::string("127.0.0.1:0"), "unix:" + path_}) {
    SCOPED_TRACE(address);
    CallerLog service(connections_);
    QUIRE_ASSERT_OK_AND_ASSIGN(std::unique_ptr<ConnectionListener> listener,
                               ConnectionListener::Open(address, connections_));
    grpc::ServerBuilder builder;
    builder.RegisterService(&service);
    listener->Prepare(builder, grpc::InsecureServerCredentials());
    const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
    ASSERT_NE(server, nullptr);
    const std::string target = WithPort(address, listener->port());
    EXPECT_EQ(Connect(target), ECONNREFUSED);
    QUIRE_ASSERT_OK(listener->Serve(*server));
    EXPECT_EQ(Connect(target), 0);
    // Nothing is known of a port before it is bound.
    EXPECT_EQ(CheckListenAddress(target).ok(), listener->port() != 0);
    listener->Stop();
    server->Shutdown();
  }
}

TEST_F(ConnectionListenerTest, TakesNoAddressThatIsInUse) {
  QUIRE_ASSERT_OK_AND_ASSIGN(
      std::unique_ptr<ConnectionListener> first,
      ConnectionListener::Open("127.0.0.1:0", connections_));
  CallerLog service(connections_);
  grpc::ServerBuilder builder;
  builder.RegisterService(&service);
  first->Prepare(builder, grpc::InsecureServerCredentials());
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  QUIRE_ASSERT_OK_AND_ASSIGN(
      std::unique_ptr<ConnectionListener> bound,
      ConnectionListener::Open(absl::StrCat("127.0.0.1:", first->port()),
                               connections_));
  QUIRE_ASSERT_OK(first->Serve(*server));
  EXPECT_THAT(bound->Serve(*server),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        testing::HasSubstr("in use")));
  EXPECT_THAT(ConnectionListener::Open(
                  absl::StrCat("127.0.0.1:", first->port()), connections_),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        testing::HasSubstr("in use")));
  EXPECT_THAT(ConnectionListener::Open("203.0.113.1:0", connections_),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        testing::HasSubstr("no such address")));
  first->Stop();
  server->Shutdown();
}

TEST_F(ConnectionListenerTest, TheSecondAtAPathIsRefusedAndLeavesTheFirst) {
  QUIRE_ASSERT_OK_AND_ASSIGN(
      std::unique_ptr<ConnectionListener> first,
      ConnectionListener::Open("unix:" + path_, connections_));
  EXPECT_THAT(ConnectionListener::Open("unix:" + path_, connections_),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        testing::HasSubstr("another server holds this lock")));
  EXPECT_TRUE(std::filesystem::is_socket(path_));
  first->Stop();
  EXPECT_FALSE(std::filesystem::exists(path_));
  // It need not have ended its calls.
  QUIRE_EXPECT_OK(
      ConnectionListener::Open("unix:" + path_, connections_).status());
}

TEST_F(ConnectionListenerTest, LeavesOtherFilesAlone) {
  std::filesystem::create_directory(path_);
  EXPECT_THAT(ConnectionListener::Open("unix:" + path_, connections_),
              HasCode(absl::StatusCode::kFailedPrecondition));
  EXPECT_TRUE(std::filesystem::is_directory(path_));
}

TEST_F(ConnectionListenerTest, RefusesPathsThatDoNotFit) {
  EXPECT_THAT(
      ConnectionListener::Open("unix:" + std::string(200, 'x'), connections_),
      HasCode(absl::StatusCode::kFailedPrecondition));
}

}  // namespace
}  // namespace quire
