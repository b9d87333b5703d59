// SPDX-License-Identifier: Apache-2.0
//
// Runs a program like a shell; for tests.
#ifndef QUIRE_CLIENT_CLI_TESTING_PROGRAM_RUNNER_H_
#define QUIRE_CLIENT_CLI_TESTING_PROGRAM_RUNNER_H_

#include <string>
#include <vector>

namespace quire {

struct ProgramRun {
  // Argument of exit(); 128 + n if signal n ended the program.
  int exit_code = -1;
  std::string out;
  std::string err;
};

struct ProgramInput {
  std::vector<std::string> arguments;
  // Bytes of standard input.
  std::string in;
  // Path for standard output; empty: ProgramRun::out.
  std::string out_path;
  // Standard output is a pipe without a reader.
  bool closed_out = false;
  // Standard output is a terminal, whose text becomes ProgramRun::out.
  bool terminal_out = false;
  // "NAME=VALUE"; replaces the whole environment.
  std::vector<std::string> environment;
};

// Blocks until the program has ended.
ProgramRun RunProgram(const std::string& program, const ProgramInput& input);

// Returns the contents of a file; empty if it does not exist.
std::string FileText(const std::string& path);

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_TESTING_PROGRAM_RUNNER_H_
