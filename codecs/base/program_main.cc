// SPDX-License-Identifier: Apache-2.0
#include "codecs/base/program_main.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <memory>
#include <new>
#include <system_error>

#include "codecs/base/help_formatter.h"
#include "codecs/base/printable_text.h"

namespace quire {
namespace {

// Opens each with the wrong access mode, so that using it fails as before. Runs
// before anything else in the process, where instrumented code could not.
__attribute__((no_sanitize("address", "thread", "undefined"))) void
HoldStandardStreams() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (fcntl(fd, F_GETFD) == -1 && errno == EBADF) {
      // The lowest free number is this one.
      static_cast<void>(open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY));
    }
  }
}

// Shared libraries open files when loaded (gRPC an eventfd), before main();
// this runs earlier. Only executables can have it.
__attribute__((section(".preinit_array"),
               used)) void (*const kHoldEarly)() = &HoldStandardStreams;

// Returns the exit code once all output is written.
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

// Name and failure code of the program, for the handler, which has no
// arguments.
const char* program_name = "";
int program_failure_code = 1;

// Called if operator new finds no memory. Ends the process before
// std::bad_alloc is thrown: gRPC swallows exceptions of its callbacks, and
// their calls would hang.
void EndWithoutMemory() {
  static constexpr char kText[] = ": out of memory\n";
  // Allocates nothing. Failure to write cannot be reported.
  static_cast<void>(!write(2, program_name, std::strlen(program_name)));
  static_cast<void>(!write(2, kText, sizeof(kText) - 1));
  std::_Exit(program_failure_code);
}

int RunToTheEnd(const char* name, const char* description, int failure_code,
                const std::function<int(CLI::App& app)>& run) {
  try {
    CLI::App app(description, name);
    // Subcommands inherit it.
    app.formatter(std::make_shared<HelpFormatter>());
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
  program_name = name;
  program_failure_code = failure_code;
  std::set_new_handler(EndWithoutMemory);
  return Flush(name, RunToTheEnd(name, description, failure_code, run),
               failure_code);
}

}  // namespace quire
