// SPDX-License-Identifier: Apache-2.0
//
// What main() of every program does around its work: exit codes, messages of
// what is thrown, and standard streams that are closed or full. Only CLI11
// throws by design, and threads that the system does not give.
#ifndef QUIRE_CODECS_BASE_PROGRAM_MAIN_H_
#define QUIRE_CODECS_BASE_PROGRAM_MAIN_H_

#include <functional>

#include "CLI/CLI.hpp"

namespace quire {

// Of a command line that makes no sense, in every program.
inline constexpr int kProgramExitUsage = 2;

// Gives main()'s exit code: that of `run`, which declares the options of `app`,
// parses with it and then does the work. If it throws instead:
//   CLI::ParseError   0 after --help and the like, whose text goes to standard
//                     output; else kProgramExitUsage, and the message to
//                     standard error
//   std::exception    `failure_code`, and "NAME: what" to standard error
// What could not be written to standard output makes 0 `failure_code`, with a
// message, unless its reader has gone away, as `head` does. `name` is the
// program's, `description` what it does in a line. What options are read into
// must outlive the call. From then on a failed allocation ends the process with
// `failure_code`, and "NAME: out of memory" on standard error. To be called by
// main() alone, at the end of it. Does not throw.
//
// In each program that is linked with this, standard streams that were closed
// when it was started are kept from being taken by the first files that it or
// its libraries open: what reads or writes them fails.
int RunProgram(const char* name, const char* description, int failure_code,
               const std::function<int(CLI::App& app)>& run);

}  // namespace quire

#endif  // QUIRE_CODECS_BASE_PROGRAM_MAIN_H_
