// SPDX-License-Identifier: Apache-2.0
//
// Common code of every main(): exit codes, messages for exceptions, and
// standard streams that are closed or full. Only CLI11 throws by design, and
// thread creation on failure.
#ifndef QUIRE_CODECS_BASE_PROGRAM_MAIN_H_
#define QUIRE_CODECS_BASE_PROGRAM_MAIN_H_

#include <functional>

#include "CLI/CLI.hpp"

namespace quire {

// Exit code for an invalid command line, in every program.
inline constexpr int kProgramExitUsage = 2;

// Returns main()'s exit code: that of `run`, which declares the options of
// `app`, parses with it and does the work. Exceptions give:
//   CLI::ParseError   0 after --help and the like, with the text on standard
//                     output; otherwise kProgramExitUsage, with the message on
//                     standard error
//   std::exception    `failure_code`, and "NAME: what" on standard error
// If standard output cannot be written, `failure_code` replaces 0, with a
// message, unless its reader has exited, as `head` does. `name` is the
// program's, `description` its purpose in one line. Variables of options must
// outlive the call. From then on a failed allocation ends the process with
// `failure_code`, and "NAME: out of memory" on standard error. Call it only at
// the end of main(). Does not throw.
//
// In each program that links this, standard streams that were closed at the
// start are occupied: files that the program or its libraries open do not get
// their descriptors, and using these streams fails.
int RunProgram(const char* name, const char* description, int failure_code,
               const std::function<int(CLI::App& app)>& run);

}  // namespace quire

#endif  // QUIRE_CODECS_BASE_PROGRAM_MAIN_H_
