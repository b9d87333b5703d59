// SPDX-License-Identifier: Apache-2.0
//
// The manual of a program, out of the same tree of options that parses its
// command line: --help, a man page and shell completion cannot disagree.
//
//   return RunProgram("quire", "reads documents", 1, [&](CLI::App& app) {
//     ... options and subcommands ...
//     AttachManual(app, {.version = "0.1.0", .exit_codes = {...}});
//     app.parse(argc, argv);
//     ...
//   });
//
// Options and subcommands of the empty group are hidden from all of it.
#ifndef QUIRE_DEPLOY_MANUAL_MANUAL_H_
#define QUIRE_DEPLOY_MANUAL_MANUAL_H_

#include <string>
#include <vector>

#include "CLI/CLI.hpp"

namespace quire {

// What a list of the manual explains: an exit code, a variable, a command.
struct ManualEntry {
  std::string term;
  std::string text;
};

// What the tree of options does not say. All text is plain ASCII; empty parts
// are left out.
struct Manual {
  // Of the program, such as "0.1.0".
  std::string version;
  // Paragraphs of DESCRIPTION; the first line of the manual is the app's own
  // description.
  std::vector<std::string> description;
  // `term` is the exit code.
  std::vector<ManualEntry> exit_codes;
  // `term` is the variable.
  std::vector<ManualEntry> environment;
  // `term` is the command line, `text` what it does.
  std::vector<ManualEntry> examples;
  // Such as "quired(1)".
  std::vector<std::string> see_also;
};

enum class Shell { kBash, kZsh };

// Gives the program --version, the exit codes, variables and examples at the
// end of --help, messages that start with its name, and two hidden options:
// --man prints the man page, --completion SHELL the completion. Call it when
// the tree is complete.
void AttachManual(CLI::App& app, const Manual& manual);

// Makes completion offer these values, without spaces, for an option that takes
// others, too.
void OfferValues(CLI::Option& option, const std::vector<std::string>& values);

// The name of a hidden subcommand that a program may have, for values that only
// it knows. Completion calls it where it would offer positionals:
//   PROGRAM complete-words -- PROGRAM WORD... LAST
// with what was typed, the last word as far as it goes, or empty. It prints
// what that may become, one a line, and nothing on standard error.
inline constexpr char kCompleteWords[] = "complete-words";

// The man page of section 1, in roff's man macros: one page with all
// subcommands. The same input gives the same page: it has no date. Thread-safe.
std::string RenderManPage(const CLI::App& app, const Manual& manual);

// A script for the shell to source: completes subcommands, options, the values
// of options with a fixed set of them (CLI::IsMember) or OfferValues(), what
// kCompleteWords prints, and else file names.
// Goes one level of subcommands deep. Thread-safe.
std::string RenderCompletion(const CLI::App& app, Shell shell);

}  // namespace quire

#endif  // QUIRE_DEPLOY_MANUAL_MANUAL_H_
