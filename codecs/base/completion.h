// SPDX-License-Identifier: Apache-2.0
//
// Shell completion from the option tree that parses the command line. The shell
// scripts know no options: at each key press they run
//   PROGRAM --complete WORDS
// with the words typed so far, one per line; the last one may be empty.
#ifndef QUIRE_CODECS_BASE_COMPLETION_H_
#define QUIRE_CODECS_BASE_COMPLETION_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"

namespace quire {

// A command line up to the word to complete.
struct TypedWords {
  // Without the program and its subcommands.
  std::vector<std::string> positionals;
  // Values of options, by long name without dashes.
  std::map<std::string, std::string> values;
  // Name of the positional that `last` belongs to, such as "ARCHIVE".
  std::string positional;
  // The word to complete, as typed so far.
  std::string last;
};

// Returns words for a positional whose values the tree lacks; the caller drops
// those that do not begin with `last`. Must not print.
using WordSource =
    std::function<std::vector<std::string>(const TypedWords& typed)>;

// Offers these values, without spaces, for an option that accepts others, too.
// Those of CLI::IsMember are known.
void OfferValues(CLI::Option& option, const std::vector<std::string>& values);

// Returns completions of the last of `words`: subcommands, options, values. The
// first word is the program. A tab and a description may follow a word. Empty
// if file names are expected. Options and subcommands of the empty group are
// hidden. `source` may be empty.
std::vector<std::string> CompleteWords(const CLI::App& app,
                                       const std::vector<std::string>& words,
                                       const WordSource& source);

// Returns the script that makes a shell, "bash" or "zsh", complete `program`.
std::string CompletionScript(const std::string& program,
                             const std::string& shell);

}  // namespace quire

#endif  // QUIRE_CODECS_BASE_COMPLETION_H_
