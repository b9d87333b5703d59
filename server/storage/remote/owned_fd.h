// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_STORAGE_REMOTE_OWNED_FD_H_
#define QUIRE_SERVER_STORAGE_REMOTE_OWNED_FD_H_

#include <unistd.h>

#include <utility>

namespace quire {

// Owns a file descriptor. Movable, not copyable.
class OwnedFd {
 public:
  OwnedFd() = default;

  explicit OwnedFd(int fd) : fd_(fd) {}

  OwnedFd(OwnedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

  OwnedFd& operator=(OwnedFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }

  ~OwnedFd() {
    if (fd_ >= 0) {
      close(fd_);
    }
  }

  int get() const { return fd_; }

  bool is_open() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_REMOTE_OWNED_FD_H_
