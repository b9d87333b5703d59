// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/unix_listener.h"

#include <unistd.h>

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
#include "codecs/base/status_matchers.h"

namespace quire {
namespace {

// Answers nothing and notes who calls.
class CallerLog : public v1::Archive::CallbackService {
 public:
  explicit CallerLog(const UnixPeers& peers) : peers_(peers) {}

  grpc::ServerUnaryReactor* ListArchives(
      grpc::CallbackServerContext* context,
      const v1::ListArchivesRequest* /*request*/,
      v1::ListArchivesResponse* /*response*/) override {
    {
      MutexLock lock(&mutex_);
      peers_seen_.insert(context->peer());
      names_.insert(peers_.NameOf(context->peer()));
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
  const UnixPeers& peers_;
  mutable Mutex mutex_;
  std::set<std::string> names_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> peers_seen_ ABSL_GUARDED_BY(mutex_);
};

class UnixListenerTest : public ::testing::Test {
 protected:
  UnixListenerTest() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "quire_test_XXXXXX").string();
    directory_ = mkdtemp(pattern.data());
    path_ = directory_ + "/socket";
  }

  ~UnixListenerTest() override { std::filesystem::remove_all(directory_); }

  std::string directory_;
  std::string path_;
  UnixPeers peers_;
};

TEST_F(UnixListenerTest, NamesAllConnectionsOfAUserAlike) {
  CallerLog service(peers_);
  QUIRE_ASSERT_OK_AND_ASSIGN(std::unique_ptr<UnixListener> listener,
                             UnixListener::Open(path_, peers_));
  grpc::ServerBuilder builder;
  builder.RegisterService(&service);
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
  listener.reset();
  EXPECT_FALSE(std::filesystem::exists(path_));
  server->Shutdown();
}

TEST_F(UnixListenerTest, ReplacesASocketThatWasLeftBehind) {
  QUIRE_ASSERT_OK_AND_ASSIGN(std::unique_ptr<UnixListener> first,
                             UnixListener::Open(path_, peers_));
  QUIRE_ASSERT_OK_AND_ASSIGN(std::unique_ptr<UnixListener> second,
                             UnixListener::Open(path_, peers_));
  EXPECT_TRUE(std::filesystem::is_socket(path_));
}

TEST_F(UnixListenerTest, LeavesOtherFilesAlone) {
  std::filesystem::create_directory(path_);
  EXPECT_THAT(UnixListener::Open(path_, peers_),
              HasCode(absl::StatusCode::kFailedPrecondition));
  EXPECT_TRUE(std::filesystem::is_directory(path_));
}

TEST_F(UnixListenerTest, RefusesPathsThatDoNotFit) {
  EXPECT_THAT(UnixListener::Open(std::string(200, 'x'), peers_),
              HasCode(absl::StatusCode::kFailedPrecondition));
}

}  // namespace
}  // namespace quire
