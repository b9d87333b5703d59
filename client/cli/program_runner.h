// SPDX-License-Identifier: Apache-2.0
//
// Runs a program as a shell would; for tests.
#ifndef QUIRE_CLIENT_CLI_PROGRAM_RUNNER_H_
#define QUIRE_CLIENT_CLI_PROGRAM_RUNNER_H_

#include <string>
#include <vector>

namespace quire {

struct ProgramRun {
  // Of exit(); 128 + n if signal n ended it.
  int exit_code = -1;
  std::string out;
  std::string err;
};

struct ProgramInput {
  std::vector<std::string> arguments;
  // Bytes of standard input.
  std::string in;
  // Where standard output goes; empty: into ProgramRun::out.
  std::string out_path;
  // Standard output is a pipe whose reader has gone.
  bool closed_out = false;
  // Standard output is a terminal, whose text becomes ProgramRun::out.
  bool terminal_out = false;
  // "NAME=VALUE", in place of all of the environment.
  std::vector<std::string> environment;
};

// Blocks until the program has ended.
ProgramRun RunProgram(const std::string& program, const ProgramInput& input);

// All of a file; empty if there is none.
std::string FileText(const std::string& path);

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_PROGRAM_RUNNER_H_
