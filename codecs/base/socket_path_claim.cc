// SPDX-License-Identifier: Apache-2.0
#include "codecs/base/socket_path_claim.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/printable_text.h"

namespace quire {
namespace {

// Locks of processes that end just then are gone when they are taken.
constexpr int kAttemptsMax = 100;

absl::Status Refused(const std::string& path, absl::string_view why) {
  return absl::FailedPreconditionError(
      absl::StrCat(PrintableText(path), ": ", why));
}

std::string ErrorText(int error_number) {
  return std::generic_category().message(error_number);
}

// True if `fd` is the file at `path`.
bool IsAt(int fd, const std::string& path) {
  struct stat opened {};

  struct stat there {};

  return fstat(fd, &opened) == 0 && lstat(path.c_str(), &there) == 0 &&
         opened.st_dev == there.st_dev && opened.st_ino == there.st_ino;
}

absl::StatusOr<UniqueFd> Lock(const std::string& path) {
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    UniqueFd fd(open(path.c_str(),
                     O_RDONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
                     S_IRUSR | S_IWUSR));
    if (!fd.is_open()) {
      return Refused(path,
                     absl::StrCat("the lock of the socket cannot be "
                                  "created (",
                                  ErrorText(errno), "); choose another path"));
    }

    struct stat info {};

    // One with contents is no lock, and must not be removed as one.
    if (fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode) ||
        info.st_uid != geteuid() || info.st_size != 0) {
      return Refused(path,
                     "must be an empty file of this user, which locks the "
                     "socket; remove it, or choose another path");
    }
    if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      return Refused(path, errno == EWOULDBLOCK
                               ? "another server holds this lock, and listens "
                                 "on the socket; stop it, or choose another "
                                 "path"
                               : ErrorText(errno));
    }
    // Its holder may have removed it before this lock.
    if (IsAt(fd.get(), path)) {
      return fd;
    }
  }
  return Refused(path, "other servers keep removing this lock; retry later");
}

}  // namespace

bool IsSocketServed(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return false;
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  const UniqueFd fd(
      socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // EAGAIN: too many connections wait to be accepted.
  return fd.is_open() &&
         (connect(fd.get(), reinterpret_cast<sockaddr*>(&address),
                  sizeof(address)) == 0 ||
          errno == EAGAIN || errno == EINPROGRESS);
}

std::optional<SocketPathClaim::FileId> SocketPathClaim::SocketAt(
    const std::string& path) {
  struct stat info {};

  return lstat(path.c_str(), &info) == 0 && S_ISSOCK(info.st_mode)
             ? std::optional(
                   FileId{.device = info.st_dev, .inode = info.st_ino})
             : std::nullopt;
}

absl::StatusOr<SocketPathClaim> SocketPathClaim::Take(const std::string& path) {
  absl::StatusOr<UniqueFd> lock = Lock(absl::StrCat(path, ".lock"));
  if (!lock.ok()) {
    return lock.status();
  }
  SocketPathClaim claim;
  claim.path_ = path;
  claim.lock_ = *std::move(lock);

  struct stat info {};

  if (lstat(path.c_str(), &info) != 0) {
    return claim;
  }
  if (!S_ISSOCK(info.st_mode)) {
    return Refused(path,
                   "a file that is not a socket exists there; remove it, or "
                   "choose another path");
  }
  // The server may be a program that takes no lock.
  if (IsSocketServed(path)) {
    return Refused(path,
                   "a server listens there already; stop it, or choose another "
                   "path");
  }
  if (unlink(path.c_str()) != 0 && errno != ENOENT) {
    return Refused(path, absl::StrCat("the socket there, of no server, cannot "
                                      "be removed (",
                                      ErrorText(errno), ")"));
  }
  return claim;
}

void SocketPathClaim::NoteBound() {
  bound_ = SocketAt(path_);
}

void SocketPathClaim::Release() {
  if (!lock_.is_open()) {
    return;
  }
  if (bound_.has_value() && SocketAt(path_) == bound_) {
    unlink(path_.c_str());
  }
  // Removed before it is unlocked, so that no other process holds it.
  const std::string lock_path = absl::StrCat(path_, ".lock");
  if (IsAt(lock_.get(), lock_path)) {
    unlink(lock_path.c_str());
  }
  UniqueFd closed = std::exchange(lock_, UniqueFd());
  bound_.reset();
}

}  // namespace quire
