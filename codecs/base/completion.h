// SPDX-License-Identifier: Apache-2.0
//
// Shell completion out of the tree of options that parses the command line. The
// scripts for the shells know no options: at each press of the key they run
//   PROGRAM --complete WORDS
// with the words typed so far, one per line, the last one possibly empty.
#ifndef QUIRE_CODECS_BASE_COMPLETION_H_
#define QUIRE_CODECS_BASE_COMPLETION_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"

namespace quire {

// A command line up to the word that is completed.
struct TypedWords {
  // Without the program and its subcommands.
  std::vector<std::string> positionals;
  // Values of options, by long name without dashes.
  std::map<std::string, std::string> values;
  // The name of the positional that `last` is, such as "ARCHIVE".
  std::string positional;
  // As far as it was typed.
  std::string last;
};

// Returns words for a positional whose values the tree does not hold; those
// that do not begin with `last` are left out by the caller. Must not print.
using WordSource =
    std::function<std::vector<std::string>(const TypedWords& typed)>;

// Makes completion offer these values, without spaces, for an option that
// accepts others, too. Those of CLI::IsMember are known.
void OfferValues(CLI::Option& option, const std::vector<std::string>& values);

// Returns what the last of `words` can become: subcommands, options, values.
// The first word is the program. A tab and a description may follow a word.
// Empty where file names are meant. Options and subcommands of the empty group
// are hidden. `source` may be empty.
std::vector<std::string> CompleteWords(const CLI::App& app,
                                       const std::vector<std::string>& words,
                                       const WordSource& source);

// Returns the script that makes a shell, "bash" or "zsh", complete `program`.
std::string CompletionScript(const std::string& program,
                             const std::string& shell);

}  // namespace quire

#endif  // QUIRE_CODECS_BASE_COMPLETION_H_
