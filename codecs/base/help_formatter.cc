// SPDX-License-Identifier: Apache-2.0
#include "codecs/base/help_formatter.h"

#include <sstream>

#include "absl/strings/str_split.h"

namespace quire {

std::string FoldText(absl::string_view text, size_t columns, size_t indent) {
  std::string folded;
  size_t line_start = 0;
  for (const absl::string_view word : absl::StrSplit(text, ' ')) {
    if (folded.size() > line_start) {
      if (folded.size() - line_start + 1 + word.size() > columns) {
        folded += '\n' + std::string(indent, ' ');
        line_start = folded.size();
      } else {
        folded += ' ';
      }
    }
    folded.append(word.data(), word.size());
  }
  return folded;
}

std::string HelpFormatter::make_option_desc(const CLI::Option* option) const {
  return Fold(option->get_description());
}

std::string HelpFormatter::make_subcommand(const CLI::App* subcommand) const {
  std::ostringstream entry;
  CLI::detail::format_help(entry, subcommand->get_display_name(true),
                           Fold(subcommand->get_description()),
                           get_column_width());
  return entry.str();
}

// CLI11 indents the lines.
std::string HelpFormatter::Fold(const std::string& description) const {
  return FoldText(description, kHelpColumns - get_column_width(), 0);
}

}  // namespace quire
