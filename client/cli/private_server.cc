// SPDX-License-Identifier: Apache-2.0
#include "client/cli/private_server.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

#include "client/cli/cli_settings.h"
#include "codecs/base/archive_name.h"
#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"
#include "codecs/base/status_macros.h"

extern char** environ;

namespace quire {
namespace {

// The same values as in quire_archive/private_server.py: else the two would
// share no servers.
constexpr char kReloadIntervalLocal[] = "1s";
constexpr char kReloadIntervalStore[] = "30s";
constexpr char kCacheSize[] = "10GiB";
constexpr char kStoreVariables[] = "QUIRED_STORE_";
constexpr size_t kSocketPathSizeMax = 107;
// Limit on the messages of a server that fails.
constexpr size_t kMessageSizeMax = 64 << 10;

absl::string_view Variable(const char* name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing changes the environment.
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

absl::Status SystemError(absl::string_view subject, absl::string_view action) {
  return absl::FailedPreconditionError(
      absl::StrCat(subject, ": cannot ", action, ": ",
                   std::generic_category().message(errno)));
}

bool IsStoreUrl(absl::string_view archive) {
  return absl::StartsWith(archive, "s3://") ||
         absl::StartsWith(archive, "http://") ||
         absl::StartsWith(archive, "https://");
}

std::string HashOf(const std::vector<std::string>& parts) {
  const std::string text = absl::StrJoin(parts, std::string(1, '\0'));
  return absl::StrFormat("%016x", Checksum64(AsBytes(text)));
}

// Returns the absolute path, without links, or the URL.
std::string LocationOf(absl::string_view archive) {
  if (IsStoreUrl(archive)) {
    while (absl::ConsumeSuffix(&archive, "/")) {
    }
    return std::string(archive);
  }
  std::error_code error;
  // A path that does not exist gets the server's message.
  const std::filesystem::path path = std::filesystem::weakly_canonical(
      std::filesystem::absolute(std::string(archive), error), error);
  return error ? std::string(archive) : path.string();
}

std::string NameOf(absl::string_view location) {
  absl::string_view name = location.substr(location.rfind('/') + 1);
  name = absl::StripSuffix(name, ".quire");
  return IsArchiveName(name) ? std::string(name) : "archive";
}

bool IsProgram(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) &&
         access(path.c_str(), X_OK) == 0;
}

// Returns the absolute path, without links, of a program that is named as in a
// shell; empty if there is none.
std::string ProgramAt(absl::string_view name) {
  std::vector<std::string> candidates;
  if (absl::StrContains(name, '/')) {
    candidates.emplace_back(name);
  } else {
    for (const absl::string_view directory :
         absl::StrSplit(Variable("PATH"), ':', absl::SkipEmpty())) {
      candidates.push_back(absl::StrCat(directory, "/", name));
    }
  }
  const auto found =
      std::find_if(candidates.begin(), candidates.end(), IsProgram);
  std::error_code error;
  return found == candidates.end()
             ? ""
             : std::filesystem::canonical(*found, error).string();
}

// Returns the absolute path of quired in the directory of this executable,
// links resolved; empty if there is none.
std::string ProgramNextToThis() {
  std::error_code error;
  const std::filesystem::path here =
      std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "" : ProgramAt((here.parent_path() / "quired").string());
}

absl::StatusOr<std::string> FindProgram() {
  const absl::string_view given = Variable("QUIRED");
  std::string program = ProgramAt(given.empty() ? "quired" : given);
  if (program.empty() && given.empty()) {
    program = ProgramNextToThis();
  }
  if (!program.empty()) {
    return program;
  }
  return absl::FailedPreconditionError(
      given.empty()
          ? "the program quired, which opens archives, was found neither in "
            "PATH nor next to quire; install it into PATH, or with pip as the "
            "package quired, or name it by the environment variable QUIRED"
          : absl::StrCat(given,
                         ": is not a program that can be run; correct the "
                         "environment variable QUIRED"));
}

absl::StatusOr<std::vector<std::string>> CommandFor(
    const std::string& location) {
  QUIRE_ASSIGN_OR_RETURN(std::string program, FindProgram());
  const bool is_store = IsStoreUrl(location);
  std::vector<std::string> command = {
      std::move(program),
      "serve",
      absl::StrCat(NameOf(location), "=", location),
      "--log-level",
      "warning",
      "--reload-interval",
      is_store ? kReloadIntervalStore : kReloadIntervalLocal};
  if (is_store) {
    const std::string cache = DefaultCacheDirectory();
    if (cache.empty()) {
      return absl::FailedPreconditionError(
          "no directory for copies of the archive; set XDG_CACHE_HOME or HOME");
    }
    const absl::string_view endpoint = Variable("QUIRED_STORE_ENDPOINT");
    command.insert(command.end(),
                   {"--store-cache",
                    absl::StrCat(cache, "/stores/",
                                 HashOf({location, std::string(endpoint)}), ":",
                                 kCacheSize)});
  }
  return command;
}

// Returns the part of the environment that `is_wanted` selects by name.
template <typename IsWanted>
std::vector<std::string> EnvironmentOf(IsWanted is_wanted) {
  std::vector<std::string> found;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const absl::string_view text = *entry;
    if (is_wanted(text.substr(0, text.find('=')))) {
      found.emplace_back(text);
    }
  }
  return found;
}

// Errors: FailedPrecondition  it is not of this user alone.
absl::Status CheckOwnDirectory(const std::string& path) {
  struct stat found {};

  if (lstat(path.c_str(), &found) != 0) {
    return SystemError(path, "examine");
  }
  const mode_t mode = found.st_mode & 07777;
  if (!S_ISDIR(found.st_mode) || found.st_uid != geteuid() || mode != 0700) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s: must be a directory of user %d with mode 0700, is %s of user %d "
        "with mode %04o; remove it",
        path, geteuid(),
        S_ISDIR(found.st_mode) ? "a directory" : "another file", found.st_uid,
        mode));
  }
  return absl::OkStatus();
}

// Returns the directory of this user's servers.
absl::StatusOr<std::string> BaseDirectory() {
  struct Candidate {
    absl::string_view root;
    std::string name;
  };

  constexpr size_t kSizeMax =
      kSocketPathSizeMax - sizeof("/0123456789abcdef/socket") + 1;
  const std::string name = absl::StrCat("quire-", geteuid());
  std::vector<std::string> refusals;
  for (const Candidate& each :
       {Candidate{Variable("XDG_RUNTIME_DIR"), "quire"},
        Candidate{Variable("TMPDIR"), name}, Candidate{"/tmp", name}}) {
    if (!absl::StartsWith(each.root, "/")) {
      continue;
    }
    absl::string_view root = each.root;
    while (absl::ConsumeSuffix(&root, "/")) {
    }
    std::string path = absl::StrCat(root, "/", each.name);
    if (path.size() > kSizeMax) {
      refusals.push_back(
          absl::StrCat(each.root, ": is too long for the path of a socket"));
    } else if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
      refusals.push_back(
          absl::StrCat(path, ": ", std::generic_category().message(errno)));
    } else {
      QUIRE_RETURN_IF_ERROR(CheckOwnDirectory(path));
      return path;
    }
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "no directory for a private server: ", absl::StrJoin(refusals, "; "),
      "; set TMPDIR to a writable directory"));
}

// Returns the directory of a server: equal for clients that may share one.
absl::StatusOr<std::string> DirectoryFor(
    const std::string& location, const std::vector<std::string>& command) {
  std::vector<std::string> parts = command;
  if (IsStoreUrl(location)) {
    // Two users of different credentials share nothing.
    std::vector<std::string> variables =
        EnvironmentOf([](absl::string_view name) {
          return absl::StartsWith(name, "AWS_") ||
                 absl::StartsWith(name, kStoreVariables);
        });
    std::sort(variables.begin(), variables.end());
    parts.insert(parts.end(), variables.begin(), variables.end());
  }
  QUIRE_ASSIGN_OR_RETURN(const std::string base, BaseDirectory());
  return absl::StrCat(base, "/", HashOf(parts));
}

std::vector<char*> PointersTo(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) {
    pointers.push_back(text.data());
  }
  pointers.push_back(nullptr);
  return pointers;
}

struct Ended {
  int exit_code = 0;
  // Start of its standard error.
  std::string message;
};

// Runs a program to its end, with `in` as standard input.
absl::StatusOr<Ended> RunCommand(std::vector<std::string> command, int in) {
  std::array<int, 2> ends = {};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return SystemError("a pipe", "create");
  }
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  // Variables of the user's own servers are not for this one.
  std::vector<std::string> environment =
      EnvironmentOf([](absl::string_view name) {
        return !absl::StartsWith(name, "QUIRED_") ||
               absl::StartsWith(name, kStoreVariables);
      });
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null",
                                   O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, writer.get(), STDERR_FILENO);
  pid_t child = 0;
  const int error =
      posix_spawn(&child, command.front().c_str(), &actions, nullptr,
                  PointersTo(command).data(), PointersTo(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  { const UniqueFd closed = std::move(writer); }
  if (error != 0) {
    errno = error;
    return SystemError(command.front(), "run");
  }
  Ended ended;
  std::array<char, 4096> buffer;
  for (ssize_t size = 1; size > 0 || (size < 0 && errno == EINTR);) {
    size = read(reader.get(), buffer.data(), buffer.size());
    if (size > 0 && ended.message.size() < kMessageSizeMax) {
      ended.message.append(buffer.data(), static_cast<size_t>(size));
    }
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  ended.exit_code =
      WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ended;
}

// Opens the FIFO for writing if a server reads it; else starts the server.
// REQUIRES: `lock` is the locked DIRECTORY/lock.
absl::StatusOr<UniqueFd> JoinLocked(const std::string& directory, int lock,
                                    std::vector<std::string> command) {
  const std::string fifo = directory + "/clients";
  if (mkfifo(fifo.c_str(), 0600) != 0 && errno != EEXIST) {
    return SystemError(fifo, "create");
  }
  const auto open_fifo = [&](int mode) {
    return UniqueFd(open(fifo.c_str(), mode | O_NONBLOCK | O_CLOEXEC));
  };
  UniqueFd share = open_fifo(O_WRONLY);
  if (share.is_open() || errno != ENXIO) {
    return share.is_open() ? absl::StatusOr<UniqueFd>(std::move(share))
                           : SystemError(fifo, "open");
  }
  const UniqueFd reader = open_fifo(O_RDONLY);
  share = open_fifo(O_WRONLY);
  if (!reader.is_open() || !share.is_open()) {
    return SystemError(fifo, "open");
  }
  command.insert(command.end(), {"--private", directory});
  QUIRE_ASSIGN_OR_RETURN(const Ended ended, RunCommand(command, lock));
  if (ended.exit_code == kExitGood) {
    return share;
  }
  unlink(fifo.c_str());
  unlink((directory + "/log").c_str());
  unlink((directory + "/lock").c_str());
  // Fails if another client has created another lock by now.
  rmdir(directory.c_str());
  return absl::Status(
      ended.exit_code == kExitUsage ? absl::StatusCode::kInvalidArgument
                                    : absl::StatusCode::kFailedPrecondition,
      absl::StrCat(command[0], " did not open ",
                   command[2].substr(command[2].find('=') + 1), ", exit code ",
                   ended.exit_code, ": ",
                   ended.message.empty()
                       ? "it gave no message"
                       : absl::StripAsciiWhitespace(ended.message)));
}

// Returns the file DIRECTORY/lock, locked; none if it was removed meanwhile.
// Other users cannot have created them: the directory above is this user's.
absl::StatusOr<UniqueFd> LockDirectory(const std::string& directory) {
  if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return SystemError(directory, "create");
  }
  const std::string path = directory + "/lock";
  UniqueFd lock(
      open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!lock.is_open()) {
    return errno == ENOENT ? absl::StatusOr<UniqueFd>(UniqueFd())
                           : SystemError(path, "create");
  }
  int error = 0;
  do {
    error = flock(lock.get(), LOCK_EX);
  } while (error != 0 && errno == EINTR);

  struct stat locked {};

  struct stat named {};

  if (error != 0 || fstat(lock.get(), &locked) != 0) {
    return SystemError(path, "lock");
  }
  if (lstat(path.c_str(), &named) != 0 || named.st_dev != locked.st_dev ||
      named.st_ino != locked.st_ino) {
    return UniqueFd();
  }
  return lock;
}

}  // namespace

absl::StatusOr<PrivateServer> PrivateServer::Join(const std::string& archive) {
  const std::string location = LocationOf(archive);
  QUIRE_ASSIGN_OR_RETURN(const std::vector<std::string> command,
                         CommandFor(location));
  QUIRE_ASSIGN_OR_RETURN(const std::string directory,
                         DirectoryFor(location, command));
  UniqueFd lock;
  // The file vanishes only by the end of its server.
  while (!lock.is_open()) {
    QUIRE_ASSIGN_OR_RETURN(lock, LockDirectory(directory));
  }
  QUIRE_ASSIGN_OR_RETURN(UniqueFd share,
                         JoinLocked(directory, lock.get(), command));
  return PrivateServer(absl::StrCat("unix:", directory, "/socket"),
                       NameOf(location), std::move(share));
}

}  // namespace quire
