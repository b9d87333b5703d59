// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_COMMANDS_SERVE_COMMAND_H_
#define QUIRE_SERVER_COMMANDS_SERVE_COMMAND_H_

#include "CLI/CLI.hpp"

namespace quire {

// Adds `quired serve`. When chosen, it serves until SIGTERM or SIGINT, and sets
// `exit_code`: 0 after a drain, 1 if it could not start, 2 for a mistake in the
// command line or the configuration file.
void AddServeCommand(CLI::App& app, int& exit_code);

// Adds `quired check-config`, which says what is wrong with a configuration
// file and exits with 0, or 2 if anything is.
void AddCheckConfigCommand(CLI::App& app, int& exit_code);

}  // namespace quire

#endif  // QUIRE_SERVER_COMMANDS_SERVE_COMMAND_H_
