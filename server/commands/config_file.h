// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_COMMANDS_CONFIG_FILE_H_
#define QUIRE_SERVER_COMMANDS_CONFIG_FILE_H_

#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"

namespace quire {

// Reads a TOML file of options into `subcommand`: each key is the long name of
// one of its options. Options that the command line gave stay as they are.
// (CLI11 reads configuration files for the top command only.)
// Errors: InvalidArgument  the file cannot be read, a key is no option of the
//                          subcommand, or a value is refused by the option's
//                          checks; the message names file and key.
absl::Status ApplyConfigFile(const std::string& path, CLI::App& subcommand);

}  // namespace quire

#endif  // QUIRE_SERVER_COMMANDS_CONFIG_FILE_H_
