// SPDX-License-Identifier: Apache-2.0
#include "codecs/base/socket_path_claim.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"

#include "testing/base/status_matchers.h"
#include "testing/base/temporary_directory.h"

namespace quire {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class SocketPathClaimTest : public ::testing::Test {
 protected:
  // Returns a socket that listens at the path.
  UniqueFd Bind() const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.data(), path_.size());
    UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(
        bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)),
        0);
    EXPECT_EQ(listen(fd.get(), 1), 0);
    return fd;
  }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_ / "s";
  const std::string lock_ = path_ + ".lock";
};

TEST_F(SocketPathClaimTest, OneProcessListensAtATime) {
  auto first = SocketPathClaim::Take(path_);
  QUIRE_ASSERT_OK(first);
  EXPECT_THAT(SocketPathClaim::Take(path_),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        HasSubstr(lock_ + ": another server holds this lock")));
  const UniqueFd listening = Bind();
  first->NoteBound();
  EXPECT_TRUE(IsSocketServed(path_));
  EXPECT_FALSE(SocketPathClaim::Take(path_).ok());
  EXPECT_TRUE(fs::is_socket(path_));
  first->Release();
  EXPECT_FALSE(fs::exists(path_));
  EXPECT_FALSE(fs::exists(lock_));
  QUIRE_EXPECT_OK(SocketPathClaim::Take(path_));
}

TEST_F(SocketPathClaimTest, TakesOverWhatAKilledProcessLeft) {
  Bind();
  std::ofstream(lock_) << "";
  EXPECT_FALSE(IsSocketServed(path_));
  const auto claim = SocketPathClaim::Take(path_);
  QUIRE_ASSERT_OK(claim);
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(SocketPathClaimTest, ASocketOfAProgramWithoutLocksStays) {
  const UniqueFd listening = Bind();
  EXPECT_THAT(SocketPathClaim::Take(path_),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        HasSubstr(path_ + ": a server listens there already")));
  EXPECT_TRUE(fs::is_socket(path_));
  EXPECT_FALSE(fs::exists(lock_));
}

// More connections than may wait: a connection would block.
TEST_F(SocketPathClaimTest, ABusySocketIsServed) {
  const UniqueFd listening = Bind();
  std::vector<UniqueFd> waiting;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path_.data(), path_.size());
  for (bool is_taken = true; is_taken;) {
    waiting.emplace_back(
        socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    is_taken =
        connect(waiting.back().get(), reinterpret_cast<sockaddr*>(&address),
                sizeof(address)) == 0;
  }
  EXPECT_TRUE(IsSocketServed(path_));
}

TEST_F(SocketPathClaimTest, RemovesOnlyItsOwnSocket) {
  auto claim = SocketPathClaim::Take(path_);
  QUIRE_ASSERT_OK(claim);
  const UniqueFd own = Bind();
  claim->NoteBound();
  // Another program replaces it.
  fs::rename(path_, directory_ / "moved");
  const UniqueFd other = Bind();
  claim->Release();
  EXPECT_TRUE(fs::is_socket(path_));
  EXPECT_FALSE(fs::exists(lock_));
}

TEST_F(SocketPathClaimTest, LeavesOtherFilesAlone) {
  fs::create_directory(path_);
  EXPECT_THAT(SocketPathClaim::Take(path_),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        HasSubstr("a file that is not a socket exists there")));
  EXPECT_TRUE(fs::is_directory(path_));
  fs::remove(path_);
  // A link is not followed.
  std::ofstream(directory_ / "target") << "text";
  fs::create_symlink(directory_ / "target", lock_);
  EXPECT_THAT(SocketPathClaim::Take(path_),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        HasSubstr(lock_ + ": the lock of the socket cannot")));
  EXPECT_TRUE(fs::is_symlink(lock_));
  fs::remove(lock_);
  // Nor is a file with contents taken for a lock, which would be removed.
  std::ofstream(lock_) << "text";
  EXPECT_THAT(SocketPathClaim::Take(path_),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        HasSubstr(lock_ + ": must be an empty file")));
  EXPECT_EQ(fs::file_size(lock_), 4u);
  EXPECT_THAT(SocketPathClaim::Take(directory_ / "none/s"),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        HasSubstr("No such file or directory")));
}

}  // namespace
}  // namespace quire
