// SPDX-License-Identifier: Apache-2.0
#include "codecs/base/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "codecs/base/check.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

constexpr size_t kErrorsSizeBytesMax = 200;
constexpr int kReadsMax = 16;
// Without a descriptor that tells of the end, it is looked for this often.
constexpr int kPollMs = 50;

absl::Status ProcessError(absl::string_view what, int error) {
  return absl::FailedPreconditionError(absl::StrCat(
      what, ": ", std::strerror(error)));  // NOLINT(concurrency-mt-unsafe)
}

struct Pipe {
  UniqueFd from;
  UniqueFd to;
};

// Reads do not block, and the child's writes do.
absl::StatusOr<Pipe> OpenPipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    return ProcessError("cannot open a pipe", errno);
  }
  fcntl(ends[1], F_SETFL, 0);
  return Pipe{.from = UniqueFd(ends[0]), .to = UniqueFd(ends[1])};
}

absl::StatusOr<pid_t> Spawn(const std::vector<std::string>& arguments,
                            int out_fd, int error_fd) {
  std::vector<char*> pointers;
  pointers.reserve(arguments.size() + 1);
  for (const std::string& argument : arguments) {
    pointers.push_back(const_cast<char*>(argument.c_str()));
  }
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  QUIRE_CHECK(posix_spawn_file_actions_init(&actions) == 0 &&
                  posix_spawnattr_init(&attributes) == 0,
              "no memory for a child");
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null",
                                   O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out_fd, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, error_fd, STDERR_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  sigset_t none;
  sigset_t every;
  sigemptyset(&none);
  sigfillset(&every);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &every);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK |
                                            POSIX_SPAWN_SETSIGDEF |
                                            POSIX_SPAWN_SETPGROUP);
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, pointers[0], &actions, &attributes,
                                 pointers.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    return ProcessError("cannot be started", error);
  }
  return pid;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(
    const std::vector<std::string>& arguments) {
  QUIRE_ASSIGN_OR_RETURN(Pipe out, OpenPipe());
  QUIRE_ASSIGN_OR_RETURN(Pipe error, OpenPipe());
  QUIRE_ASSIGN_OR_RETURN(const pid_t pid,
                         Spawn(arguments, out.to.get(), error.to.get()));
  return std::unique_ptr<ChildProcess>(
      new ChildProcess(pid, std::move(out.from), std::move(error.from)));
}

ChildProcess::ChildProcess(pid_t pid, UniqueFd out, UniqueFd error)
    : pid_(pid),
      exit_(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))),
      out_(std::move(out)),
      error_(std::move(error)) {}

ChildProcess::~ChildProcess() {
  if (!status_.has_value()) {
    kill(-pid_, SIGKILL);
    Reap(/*may_wait=*/true);
  }
}

void ChildProcess::ReadErrors() {
  std::array<char, 4096> part;
  // Bounded: it may write for as long as it is read.
  for (int i = 0; i < kReadsMax && is_error_open_; ++i) {
    const ssize_t got = read(error_.get(), part.data(), part.size());
    if (got > 0) {
      errors_.append(part.data(),
                     std::min(static_cast<size_t>(got),
                              kErrorsSizeBytesMax - errors_.size()));
      continue;
    }
    is_error_open_ = got < 0 && (errno == EAGAIN || errno == EINTR);
    return;
  }
}

void ChildProcess::Wait(bool wants_out, int time_max_ms) {
  std::array<pollfd, 3> wanted = {
      pollfd{.fd = wants_out ? out_.get() : -1, .events = POLLIN, .revents = 0},
      pollfd{.fd = is_error_open_ ? error_.get() : -1,
             .events = POLLIN,
             .revents = 0},
      pollfd{.fd = exit_.get(), .events = POLLIN, .revents = 0}};
  const bool is_told = exit_.is_open();
  poll(wanted.data(), wanted.size(),
       is_told || (time_max_ms >= 0 && time_max_ms < kPollMs) ? time_max_ms
                                                              : kPollMs);
}

bool ChildProcess::Reap(bool may_wait) {
  int status = 0;
  pid_t reaped = 0;
  do {
    reaped = waitpid(pid_, &status, may_wait ? 0 : WNOHANG);
  } while (reaped < 0 && errno == EINTR);
  if (reaped != 0) {
    // Something else can have reaped it: its outcome is then unknown.
    status_ = reaped == pid_ ? status : -1;
  }
  return reaped != 0;
}

absl::Status ChildProcess::CheckEnd() const {
  const int status = *status_;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    return absl::OkStatus();
  }
  const std::string line = errors_.substr(0, errors_.find('\n'));
  return absl::FailedPreconditionError(absl::StrCat(
      WIFEXITED(status)
          ? absl::StrCat("ended with exit code ", WEXITSTATUS(status))
      : WIFSIGNALED(status) ? absl::StrCat("ended by signal ", WTERMSIG(status))
                            : "ended in an unknown way",
      line.empty() ? "" : absl::StrCat(": ", PrintableText(line))));
}

}  // namespace quire
