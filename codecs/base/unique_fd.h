// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_BASE_UNIQUE_FD_H_
#define QUIRE_CODECS_BASE_UNIQUE_FD_H_

#include <unistd.h>

#include <utility>

namespace quire {

// Owns a file descriptor, or none (-1), and closes it. Movable, not copyable:
// assignment swaps. Thread-compatible; several threads may use the descriptor.
class UniqueFd {
 public:
  UniqueFd() = default;

  explicit UniqueFd(int fd) : fd_(fd) {}

  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }

  ~UniqueFd() {
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

#endif  // QUIRE_CODECS_BASE_UNIQUE_FD_H_
