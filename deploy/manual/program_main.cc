// SPDX-License-Identifier: Apache-2.0
#include "deploy/manual/program_main.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>

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
int Flush(const CLI::App& app, int exit_code, int failure_code) {
  std::cout.flush();
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout) {
    return exit_code;
  }
  if (errno == EPIPE) {
    return exit_code;
  }
  std::cerr << app.get_name()
            << ": cannot write to standard output: " << std::strerror(errno)
            << "\n";
  return exit_code == 0 ? failure_code : exit_code;
}

int RunToTheEnd(const CLI::App& app, int failure_code,
                const std::function<int()>& run) {
  try {
    return run();
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kProgramExitUsage;
  } catch (const std::exception& error) {
    std::cerr << app.get_name() << ": " << PrintableMessage(error.what())
              << "\n";
    return failure_code;
  }
}

}  // namespace

int RunProgram(const CLI::App& app, int failure_code,
               const std::function<int()>& run) {
  return Flush(app, RunToTheEnd(app, failure_code, run), failure_code);
}

}  // namespace quire
