// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/unix_listener.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "grpcpp/server_posix.h"

namespace quire {
namespace {

// Without descriptors or memory there is nothing to accept with for a while.
constexpr int kPauseMs = 100;

std::string ErrnoMessage() {
  return std::generic_category().message(errno);
}

// Closes on the way out unless released.
class OwnedFd {
 public:
  explicit OwnedFd(int fd) : fd_(fd) {}

  ~OwnedFd() {
    if (fd_ >= 0) {
      close(fd_);
    }
  }

  OwnedFd(const OwnedFd&) = delete;
  OwnedFd& operator=(const OwnedFd&) = delete;

  int get() const { return fd_; }

  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

void RemoveSocket(const std::string& path) {
  struct stat info {};

  if (lstat(path.c_str(), &info) == 0 && S_ISSOCK(info.st_mode)) {
    unlink(path.c_str());
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<UnixListener>> UnixListener::Open(
    const std::string& path, UnixPeers& peers) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return absl::FailedPreconditionError(
        absl::StrCat("a socket's path has 1 to ", sizeof(address.sun_path) - 1,
                     " bytes, got ", path.size()));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  OwnedFd listening(
      socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  OwnedFd stop(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (listening.get() < 0 || stop.get() < 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot make a unix socket: ", ErrnoMessage()));
  }
  RemoveSocket(path);
  if (bind(listening.get(), reinterpret_cast<const sockaddr*>(&address),
           sizeof(address)) != 0 ||
      listen(listening.get(), SOMAXCONN) != 0) {
    return absl::FailedPreconditionError(ErrnoMessage());
  }
  return std::unique_ptr<UnixListener>(
      new UnixListener(path, listening.Release(), stop.Release(), peers));
}

UnixListener::~UnixListener() {
  const uint64_t one = 1;
  // Of eight bytes; an eventfd at 0 takes them at once.
  [[maybe_unused]] const ssize_t written = write(stop_fd_, &one, sizeof(one));
  if (thread_.joinable()) {
    thread_.join();
  }
  close(listen_fd_);
  close(stop_fd_);
  RemoveSocket(path_);
}

absl::Status UnixListener::Serve(grpc::Server& server) {
  try {
    thread_ = std::thread([this, &server] { AcceptUntilStopped(server); });
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "cannot start a thread to accept connections with: ", error.what()));
  }
  return absl::OkStatus();
}

void UnixListener::AcceptUntilStopped(grpc::Server& server) {
  pthread_setname_np(pthread_self(), "quire-accept");
  pollfd waiting[] = {{stop_fd_, POLLIN, 0}, {listen_fd_, POLLIN, 0}};
  while (true) {
    if (poll(waiting, 2, -1) < 0 && errno != EINTR) {
      return;
    }
    if (waiting[0].revents != 0) {
      return;
    }
    const int fd =
        accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
          errno == ENOMEM) {
        poll(waiting, 1, kPauseMs);
      }
      continue;
    }
    ucred peer{};
    socklen_t size = sizeof(peer);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
      close(fd);
      continue;
    }
    peers_.Add(fd, peer.uid);
    grpc::AddInsecureChannelFromFd(&server, fd);
  }
}

}  // namespace quire
