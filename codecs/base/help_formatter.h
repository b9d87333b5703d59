// SPDX-License-Identifier: Apache-2.0
//
// Text of --help in lines that a terminal shows whole.
#ifndef QUIRE_CODECS_BASE_HELP_FORMATTER_H_
#define QUIRE_CODECS_BASE_HELP_FORMATTER_H_

#include <cstddef>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/string_view.h"

namespace quire {

// Columns of a line of help; --help-all indents that of subcommands by two.
inline constexpr size_t kHelpColumns = 98;

// Returns `text`, which has no line ends, in lines of at most `columns`: line
// ends, each with `indent` blanks after it, replace some of its blanks. A word
// that is longer has its own line.
std::string FoldText(absl::string_view text, size_t columns, size_t indent);

// Folds descriptions. The names of options and what they exclude have one line:
// help2man takes a second one for another option.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_desc(const CLI::Option* option) const override;
  std::string make_subcommand(const CLI::App* subcommand) const override;

 private:
  std::string Fold(const std::string& description) const;
};

}  // namespace quire

#endif  // QUIRE_CODECS_BASE_HELP_FORMATTER_H_
