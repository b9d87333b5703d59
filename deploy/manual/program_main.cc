// SPDX-License-Identifier: Apache-2.0
#include "deploy/manual/program_main.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <iostream>
#include <system_error>

#include "codecs/base/printable_text.h"

namespace quire {
namespace {

// Each is opened the wrong way round, so that using it fails as before. Runs
// before anything else in the process, where instrumented code could not.
__attribute__((no_sanitize("address", "thread", "undefined"))) void
HoldStandardStreams() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (fcntl(fd, F_GETFD) == -1 && errno == EBADF) {
      // The lowest number that is free is this one.
      static_cast<void>(open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY));
    }
  }
}

// Shared libraries open files when they are loaded (gRPC an eventfd), before
// main(); this is called before that. Only an executable can have it.
__attribute__((section(".preinit_array"),
               used)) void (*const hold_early)() = &HoldStandardStreams;

// The exit code, once all is written.
int Flush(const char* name, int exit_code, int failure_code) {
  std::cout.flush();
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout) {
    return exit_code;
  }
  if (errno == EPIPE) {
    return exit_code;
  }
  std::cerr << name << ": cannot write to standard output: "
            << std::generic_category().message(errno) << "\n";
  return exit_code == 0 ? failure_code : exit_code;
}

int RunToTheEnd(const char* name, const char* description, int failure_code,
                const std::function<int(CLI::App& app)>& run) {
  try {
    CLI::App app(description, name);
    try {
      return run(app);
    } catch (const CLI::ParseError& error) {
      return app.exit(error) == 0 ? 0 : kProgramExitUsage;
    }
  } catch (const std::exception& error) {
    std::cerr << name << ": " << PrintableMessage(error.what()) << "\n";
    return failure_code;
  }
}

}  // namespace

int RunProgram(const char* name, const char* description, int failure_code,
               const std::function<int(CLI::App& app)>& run) {
  return Flush(name, RunToTheEnd(name, description, failure_code, run),
               failure_code);
}

}  // namespace quire
