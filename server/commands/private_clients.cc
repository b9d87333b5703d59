// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/commands/private_clients.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "server/archive/files/file_io.h"
#include "server/commands/subcommand_support.h"

namespace quire {
namespace {

constexpr char kClients[] = "clients";
constexpr char kLock[] = "lock";
constexpr char kLog[] = "log";

absl::Status CheckOwnDirectory(int fd, const std::string& path) {
  struct stat status {};

  if (fstat(fd, &status) != 0) {
    return ErrnoStatus(errno, path, "examine");
  }
  constexpr mode_t kPermissions = 07777;
  if (status.st_uid != geteuid() || (status.st_mode & kPermissions) != 0700) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "--private %s: must be a directory of user %d with mode 0700, is of "
        "user %d with mode %04o; remove it",
        path, geteuid(), status.st_uid, status.st_mode & kPermissions));
  }
  return absl::OkStatus();
}

// Returns the exit code of a child that ended.
int WaitFor(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) {
      return kExitFailed;
    }
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

absl::StatusOr<std::unique_ptr<PrivateClients>> PrivateClients::Open(
    const std::string& directory) {
  std::unique_ptr<PrivateClients> made(new PrivateClients(directory));
  made->directory_ = UniqueFd(
      open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!made->directory_.is_open()) {
    return ErrnoStatus(errno, directory, "open");
  }
  if (const absl::Status status =
          CheckOwnDirectory(made->directory_.get(), directory);
      !status.ok()) {
    return status;
  }
  const std::string fifo = absl::StrCat(directory, "/", kClients);
  made->clients_ =
      UniqueFd(openat(made->directory_.get(), kClients,
                      O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));

  struct stat status {};

  if (!made->clients_.is_open() || fstat(made->clients_.get(), &status) != 0) {
    return ErrnoStatus(errno, fifo, "open");
  }
  // A FIFO that never had a writer does not hang up; reading sees it. Clients
  // write nothing.
  char byte = 0;
  if (!S_ISFIFO(status.st_mode) || read(made->clients_.get(), &byte, 1) == 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        fifo, ": must be a FIFO that a client has open for writing"));
  }
  constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC;
  made->lock_ = UniqueFd(openat(made->directory_.get(), kLock, kFlags, 0600));
  made->log_ = UniqueFd(openat(made->directory_.get(), kLog, kFlags, 0600));
  if (!made->lock_.is_open() || !made->log_.is_open()) {
    return ErrnoStatus(errno, directory, "create files in it");
  }
  return made;
}

PrivateClients::~PrivateClients() {
  if (!is_server_ || (!is_locked_ && Look() != LastLook::kGone)) {
    return;
  }
  unlinkat(directory_.get(), kClients, 0);
  unlinkat(directory_.get(), kLog, 0);
  unlinkat(directory_.get(), kLock, 0);
  // Fails if a client has created another lock by now.
  rmdir(path_.c_str());
}

std::string PrivateClients::listen_address() const {
  return absl::StrCat("unix:", path_, "/socket");
}

absl::StatusOr<std::optional<int>> PrivateClients::Detach() {
  std::array<int, 2> ends = {};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return ErrnoStatus(errno, "a pipe", "create");
  }
  UniqueFd started(ends[0]);
  ready_ = UniqueFd(ends[1]);
  const pid_t child = fork();
  if (child < 0) {
    return ErrnoStatus(errno, "a process", "create");
  }
  if (child > 0) {
    { const UniqueFd closed = std::move(ready_); }
    char byte = 0;
    ssize_t size = 0;
    do {
      size = read(started.get(), &byte, 1);
    } while (size < 0 && errno == EINTR);
    return size == 1 ? kExitGood : WaitFor(child);
  }
  is_server_ = true;
  // Signals of the client's terminal are not for the server.
  setsid();
  // Standard input holds the lock of the start.
  const UniqueFd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null.is_open() || dup2(null.get(), STDIN_FILENO) < 0) {
    return ErrnoStatus(errno, "/dev/null", "open");
  }
  return std::nullopt;
}

void PrivateClients::NoteReady() {
  // Neither fails: both are open.
  dup2(log_.get(), STDERR_FILENO);
  (void)!write(ready_.get(), "", 1);
  const UniqueFd closed = std::move(ready_);
}

bool PrivateClients::AreGone() const {
  pollfd clients = {clients_.get(), 0, 0};
  return poll(&clients, 1, 0) == 1 && (clients.revents & POLLHUP) != 0;
}

PrivateClients::LastLook PrivateClients::Look() {
  if (flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    return LastLook::kLocked;
  }
  is_locked_ = AreGone();
  if (!is_locked_) {
    flock(lock_.get(), LOCK_UN);
  }
  return is_locked_ ? LastLook::kGone : LastLook::kJoined;
}

}  // namespace quire
