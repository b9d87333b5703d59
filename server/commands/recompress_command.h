// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_COMMANDS_RECOMPRESS_COMMAND_H_
#define QUIRE_SERVER_COMMANDS_RECOMPRESS_COMMAND_H_

#include "CLI/CLI.hpp"

namespace quire {

// Adds "recompress": reads and decodes all of an archive and names what is
// damaged. When the command line asks for it, app.parse() runs it and sets
// `exit_code`, which must outlive `app`.
void AddRecompressCommand(CLI::App& app, int& exit_code);

}  // namespace quire

#endif  // QUIRE_SERVER_COMMANDS_RECOMPRESS_COMMAND_H_
