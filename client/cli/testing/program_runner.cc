// SPDX-License-Identifier: Apache-2.0
#include "client/cli/testing/program_runner.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace quire {
namespace {

// A temporary file that is removed at the end of its scope.
class ScratchFile {
 public:
  explicit ScratchFile(const std::string& text = "") {
    std::string name =
        (std::filesystem::temp_directory_path() / "quire_run_XXXXXX").string();
    fd_ = mkostemp(name.data(), O_CLOEXEC);
    path_ = name;
    std::ofstream(path_, std::ios::binary) << text;
  }

  ~ScratchFile() {
    close(fd_);
    unlink(path_.c_str());
  }

  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int fd_ = -1;
};

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) {
    pointers.push_back(word.data());
  }
  pointers.push_back(nullptr);
  return pointers;
}

// Both ends of a terminal; output is read back unchanged.
int OpenTerminal(std::string& other_end) {
  const int fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (fd < 0 || grantpt(fd) != 0 || unlockpt(fd) != 0) {
    return -1;
  }
  char name[128];
  if (ptsname_r(fd, name, sizeof(name)) != 0) {
    return -1;
  }
  other_end = name;
  struct termios raw;
  tcgetattr(fd, &raw);
  cfmakeraw(&raw);
  tcsetattr(fd, TCSANOW, &raw);
  return fd;
}

}  // namespace

ProgramRun RunProgram(const std::string& program, const ProgramInput& input) {
  std::vector<std::string> words = {program};
  words.insert(words.end(), input.arguments.begin(), input.arguments.end());
  std::vector<std::string> environment = input.environment;
  const ScratchFile in(input.in);
  const ScratchFile out;
  const ScratchFile err;

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, in.path().c_str(),
                                   O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err.path().c_str(),
                                   O_WRONLY, 0);
  int closed_pipe[2] = {-1, -1};
  int terminal = -1;
  std::string out_path = input.out_path.empty() ? out.path() : input.out_path;
  if (input.closed_out) {
    if (pipe2(closed_pipe, O_CLOEXEC) == 0) {
      close(closed_pipe[0]);
      posix_spawn_file_actions_adddup2(&actions, closed_pipe[1], STDOUT_FILENO);
    }
  } else {
    if (input.terminal_out) {
      terminal = OpenTerminal(out_path);
    }
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out_path.c_str(),
                                     O_WRONLY | O_NOCTTY, 0);
  }

  ProgramRun run;
  pid_t pid = -1;
  if (posix_spawn(&pid, program.c_str(), &actions, nullptr,
                  Pointers(words).data(), Pointers(environment).data()) == 0) {
    int status = 0;
    waitpid(pid, &status, 0);
    run.exit_code =
        WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  posix_spawn_file_actions_destroy(&actions);
  if (closed_pipe[1] >= 0) {
    close(closed_pipe[1]);
  }
  if (terminal >= 0) {
    // The output is small enough for the terminal's buffer. It arrives in
    // pieces, and the other end is closed after the last.
    char text[4096];
    for (ssize_t size = 0; (size = read(terminal, text, sizeof(text))) > 0;) {
      run.out.append(text, static_cast<size_t>(size));
    }
    close(terminal);
  } else {
    run.out = FileText(out.path());
  }
  run.err = FileText(err.path());
  return run;
}

std::string FileText(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace quire
