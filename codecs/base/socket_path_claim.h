// SPDX-License-Identifier: Apache-2.0
//
// The path of a unix socket, for one listening process at a time.
#ifndef QUIRE_CODECS_BASE_SOCKET_PATH_CLAIM_H_
#define QUIRE_CODECS_BASE_SOCKET_PATH_CLAIM_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

#include "codecs/base/unique_fd.h"

namespace quire {

// A locked file PATH.lock next to the socket. While it is held no other process
// that claims the path replaces or removes the socket. A process that is killed
// leaves both files; the next claim takes them over. Movable.
// Thread-compatible.
class SocketPathClaim {
 public:
  // Holds nothing.
  SocketPathClaim() = default;

  // Claims the path, and removes a socket without a listener. Does not
  // block.
  // Errors: FailedPrecondition  another process claims it or listens there; a
  //                             file that is not a socket exists there; or the
  //                             lock cannot be created. The message says what
  //                             to do.
  static absl::StatusOr<SocketPathClaim> Take(const std::string& path);

  SocketPathClaim(SocketPathClaim&& other) noexcept
      : path_(std::exchange(other.path_, {})),
        lock_(std::move(other.lock_)),
        bound_(std::exchange(other.bound_, std::nullopt)) {}

  SocketPathClaim& operator=(SocketPathClaim&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(lock_, other.lock_);
    std::swap(bound_, other.bound_);
    return *this;
  }

  ~SocketPathClaim() { Release(); }

  // Notes the socket at the path, which the caller has just bound.
  void NoteBound();

  // Removes that socket, unless another file is there by now, and the lock.
  void Release();

 private:
  struct FileId {
    dev_t device = 0;
    ino_t inode = 0;

    bool operator==(const FileId&) const = default;
  };

  // Unset unless a socket is there.
  static std::optional<FileId> SocketAt(const std::string& path);

  std::string path_;
  UniqueFd lock_;
  std::optional<FileId> bound_;
};

// True if a process listens on the unix socket at `path`. Does not block.
bool IsSocketServed(const std::string& path);

}  // namespace quire

#endif  // QUIRE_CODECS_BASE_SOCKET_PATH_CLAIM_H_
