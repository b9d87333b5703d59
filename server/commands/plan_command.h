// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_COMMANDS_PLAN_COMMAND_H_
#define QUIRE_SERVER_COMMANDS_PLAN_COMMAND_H_

#include "CLI/CLI.hpp"

namespace quire {

// Adds `quired plan`, which says what archives of some inputs would be like and
// which to build.
void AddPlanCommand(CLI::App& app, int& exit_code);

}  // namespace quire

#endif  // QUIRE_SERVER_COMMANDS_PLAN_COMMAND_H_
