// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_COMMANDS_TOKEN_COMMAND_H_
#define QUIRE_SERVER_COMMANDS_TOKEN_COMMAND_H_

#include "CLI/CLI.hpp"

namespace quire {

// Adds `quired token new`, which makes a token and its line for the file of
// `quired serve --access`.
void AddTokenCommand(CLI::App& app, int& exit_code);

}  // namespace quire

#endif  // QUIRE_SERVER_COMMANDS_TOKEN_COMMAND_H_
