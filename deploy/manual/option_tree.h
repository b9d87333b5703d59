// SPDX-License-Identifier: Apache-2.0
//
// What the manual needs of a CLI::App, in plain strings. Internal to this
// directory.
#ifndef QUIRE_DEPLOY_MANUAL_OPTION_TREE_H_
#define QUIRE_DEPLOY_MANUAL_OPTION_TREE_H_

#include <string>
#include <vector>

#include "CLI/CLI.hpp"

namespace quire {

struct OptionView {
  // "--output", "-o"; long ones first. Empty for a positional.
  std::vector<std::string> names;
  // Of a positional: how it is called, with "..." if it may repeat and in
  // brackets if it may be left out.
  std::string positional;
  // What it takes, such as "FILE"; empty for a flag.
  std::string value_name;
  // All that it takes, where that is a fixed set.
  std::vector<std::string> values;
  // Those, or else what OfferValues() named: what completion offers.
  std::vector<std::string> offered;
  std::string text;
  // Empty if there is none.
  std::string default_value;
};

struct CommandView {
  std::string name;
  std::string text;
  std::vector<OptionView> options;
  std::vector<OptionView> positionals;
  std::vector<CommandView> subcommands;
  // Options of the commands above that may also be given after this one.
  std::vector<OptionView> inherited;
  bool needs_subcommand = false;
};

// Visible options and subcommands only, in the order of --help.
CommandView ViewCommand(const CLI::App& app);

}  // namespace quire

#endif  // QUIRE_DEPLOY_MANUAL_OPTION_TREE_H_
