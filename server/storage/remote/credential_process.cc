// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/remote/credential_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/check.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "codecs/base/unique_fd.h"

namespace quire {
namespace {

constexpr size_t kOutputSizeBytesMax = size_t{64} << 10;
constexpr size_t kComplaintSizeBytesMax = 200;
// Looks for a cancellation this often.
constexpr int kPollMs = 50;

absl::Status ProcessError(absl::string_view what, int error) {
  return absl::FailedPreconditionError(absl::StrCat(
      what, ": ", std::strerror(error)));  // NOLINT(concurrency-mt-unsafe)
}

struct Pipe {
  UniqueFd from;
  UniqueFd to;
};

absl::StatusOr<Pipe> OpenPipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    return ProcessError("cannot open a pipe", errno);
  }
  return Pipe{.from = UniqueFd(ends[0]), .to = UniqueFd(ends[1])};
}

// A child that is killed with its group, and reaped.
class Child {
 public:
  explicit Child(pid_t pid)
      : pid_(pid), exit_(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))) {}

  ~Child() {
    if (!status_.has_value()) {
      kill(-pid_, SIGKILL);
      Reap(0);
    }
  }

  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Becomes readable at the end; none if the kernel has none.
  int exit_fd() const { return exit_.get(); }

  // Returns true if it has ended.
  bool HasEnded() { return status_.has_value() || Reap(WNOHANG); }

  // That of waitpid(). REQUIRES: HasEnded().
  int status() const { return *status_; }

 private:
  bool Reap(int options) {
    int status = 0;
    pid_t reaped = 0;
    do {
      reaped = waitpid(pid_, &status, options);
    } while (reaped < 0 && errno == EINTR);
    if (reaped != 0) {
      // Something else can have reaped it: its outcome is then unknown.
      status_ = reaped == pid_ ? status : -1;
    }
    return reaped != 0;
  }

  const pid_t pid_;
  const UniqueFd exit_;
  std::optional<int> status_;
};

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

// Reads all that is there. Returns false at the end, or if `text` has more than
// `size_bytes_max` bytes.
bool ReadAvailable(int fd, std::string& text, size_t size_bytes_max) {
  std::array<char, 4096> part;
  while (text.size() <= size_bytes_max) {
    const ssize_t got = read(fd, part.data(), part.size());
    if (got <= 0) {
      return got < 0 && (errno == EAGAIN || errno == EINTR);
    }
    text.append(part.data(), static_cast<size_t>(got));
  }
  return false;
}

// Reads and drops, except for the beginning.
bool ReadComplaint(int fd, std::string& text) {
  std::string more;
  const bool is_open = ReadAvailable(fd, more, kOutputSizeBytesMax);
  text.append(more, 0, kComplaintSizeBytesMax - text.size());
  return is_open || more.size() > kOutputSizeBytesMax;
}

absl::Status CheckEnd(int status, const std::string& complaint) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    return absl::OkStatus();
  }
  const std::string line = complaint.substr(0, complaint.find('\n'));
  return absl::FailedPreconditionError(absl::StrCat(
      WIFEXITED(status)
          ? absl::StrCat("ended with exit code ", WEXITSTATUS(status))
      : WIFSIGNALED(status) ? absl::StrCat("ended by signal ", WTERMSIG(status))
                            : "ended in an unknown way",
      line.empty() ? "" : absl::StrCat(": ", PrintableText(line))));
}

}  // namespace

absl::StatusOr<std::string> RunCredentialProcess(
    const std::vector<std::string>& arguments,
    std::chrono::milliseconds time_max, const std::atomic<bool>& cancel) {
  QUIRE_ASSIGN_OR_RETURN(Pipe out, OpenPipe());
  QUIRE_ASSIGN_OR_RETURN(Pipe error, OpenPipe());
  // The child's ends block.
  for (const UniqueFd* end : {&out.to, &error.to}) {
    fcntl(end->get(), F_SETFL, 0);
  }
  QUIRE_ASSIGN_OR_RETURN(const pid_t pid,
                         Spawn(arguments, out.to.get(), error.to.get()));
  Child child(pid);
  { const Pipe closed = {.from = {}, .to = std::move(out.to)}; }
  { const Pipe closed = {.from = {}, .to = std::move(error.to)}; }
  const auto end = std::chrono::steady_clock::now() + time_max;
  std::string text;
  std::string complaint;
  bool is_out_open = true;
  bool is_error_open = true;
  while (true) {
    // Looked for first: what it has written is there then.
    const bool has_ended = child.HasEnded();
    is_out_open =
        is_out_open && ReadAvailable(out.from.get(), text, kOutputSizeBytesMax);
    is_error_open = is_error_open && ReadComplaint(error.from.get(), complaint);
    if (text.size() > kOutputSizeBytesMax) {
      return absl::FailedPreconditionError(absl::StrCat(
          "writes more than ", kOutputSizeBytesMax, " bytes to stdout"));
    }
    // Its own children may have the pipes open for longer.
    if (has_ended) {
      break;
    }
    if (cancel) {
      return absl::CancelledError("the server stops");
    }
    if (std::chrono::steady_clock::now() >= end) {
      return absl::DeadlineExceededError(
          absl::StrCat("does not end within ", time_max.count() / 1000, " s"));
    }
    std::array<pollfd, 3> wanted = {
        pollfd{.fd = is_out_open ? out.from.get() : -1,
               .events = POLLIN,
               .revents = 0},
        pollfd{.fd = is_error_open ? error.from.get() : -1,
               .events = POLLIN,
               .revents = 0},
        pollfd{.fd = child.exit_fd(), .events = POLLIN, .revents = 0}};
    poll(wanted.data(), wanted.size(), kPollMs);
  }
  QUIRE_RETURN_IF_ERROR(CheckEnd(child.status(), complaint));
  return text;
}

}  // namespace quire
