// SPDX-License-Identifier: Apache-2.0
//
// The command line of `quire`: one tree of options for parsing, help, the man
// page and completion, and one table of subcommands.
#ifndef QUIRE_CLIENT_CLI_COMMAND_LINE_H_
#define QUIRE_CLIENT_CLI_COMMAND_LINE_H_

#include "CLI/CLI.hpp"
#include "absl/status/status.h"

#include "client/cli/cli_run.h"
#include "client/cli/cli_settings.h"

namespace quire {

// True if the command line of main() has --archive.
bool HasArchivePath(int argc, const char* const* argv);

// Fills `app` with the tree. Parsing writes to `settings`; both must outlive
// the use of `app`. With `has_archive_path` subcommands have no argument
// ARCHIVE, and there are no options for the connection to a server.
void DefineCommandLine(CLI::App& app, CliSettings& settings,
                       bool has_archive_path);

// Parses the command line of main() into the settings of `app`. Throws
// CLI::ParseError, as CLI::App::parse() does; CLI::App::exit() handles it.
void ParseCommandLine(CLI::App& app, CliSettings& settings, int argc,
                      const char* const* argv);

// Runs the subcommand that was parsed; as subcommands.h. REQUIRES: there is
// one.
absl::Status RunSubcommand(const CLI::App& app, CliRun& run);

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_COMMAND_LINE_H_
