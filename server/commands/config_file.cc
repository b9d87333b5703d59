// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/commands/config_file.h"

#include <vector>

#include "absl/strings/str_cat.h"

#include "codecs/base/printable_text.h"

namespace quire {

absl::Status ApplyConfigFile(const std::string& path, CLI::App& subcommand) {
  std::vector<CLI::ConfigItem> items;
  try {
    items = CLI::ConfigTOML().from_file(path);
  } catch (const CLI::Error& error) {
    return absl::InvalidArgumentError(absl::StrCat(
        path,
        ": must be a TOML file with a line OPTION = VALUE for each option, ",
        "and cannot be read as one: ", error.what()));
  }
  for (const CLI::ConfigItem& item : items) {
    CLI::Option* option = subcommand.get_option_no_throw("--" + item.name);
    if (option == nullptr || !item.parents.empty() || item.name == "help" ||
        item.name == "config") {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": names in it must be long options of ", subcommand.get_name(),
          ", got ", QuotedText(item.fullname()), "; quired ",
          subcommand.get_name(), " --help lists them"));
    }
    if (option->count() > 0) {
      continue;
    }
    try {
      option->add_result(item.inputs);
      option->run_callback();
    } catch (const CLI::Error& error) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": ", item.fullname(), ": ", error.what()));
    }
  }
  return absl::OkStatus();
}

}  // namespace quire
