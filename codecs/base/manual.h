// SPDX-License-Identifier: Apache-2.0
//
// The manual of a program from the option tree that parses its command line:
// --help, the man page and shell completion cannot disagree.
//
//   return RunProgram("quire", "reads documents", 1, [&](CLI::App& app) {
//     ... options and subcommands ...
//     AttachManual(app, {.version = "0.1.0", .exit_codes = {...}});
//     app.parse(argc, argv);
//     ...
//   });
//
// Options and subcommands of the empty group are hidden from all of it.
#ifndef QUIRE_CODECS_BASE_MANUAL_H_
#define QUIRE_CODECS_BASE_MANUAL_H_

#include <string>
#include <vector>

#include "CLI/CLI.hpp"

#include "codecs/base/completion.h"

namespace quire {

// An entry of a list in the manual: an exit code, a variable, a command.
struct ManualEntry {
  std::string term;
  std::string text;
};

// Facts that the option tree lacks. All text is plain ASCII; empty parts are
// omitted.
struct Manual {
  // Version of the program, such as "0.1.0".
  std::string version;
  // `term` is the exit code.
  std::vector<ManualEntry> exit_codes;
  // `term` is the variable.
  std::vector<ManualEntry> environment;
  // `term` is the command line, `text` its purpose.
  std::vector<ManualEntry> examples;
  // Further words for completion; may be empty.
  WordSource word_source;
};

// Gives the program --version; exit codes, variables and examples at the end of
// --help; --help-all, of which help2man makes the man page; --completion SHELL,
// which prints a script for the shell to source, and the hidden --complete,
// which that script runs; and messages that start with its name. Call it when
// the tree is complete.
void AttachManual(CLI::App& app, const Manual& manual);

}  // namespace quire

#endif  // QUIRE_CODECS_BASE_MANUAL_H_
