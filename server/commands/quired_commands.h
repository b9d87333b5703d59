// SPDX-License-Identifier: GPL-3.0-or-later
//
// The subcommands of quired, each in its own source (build_command.cc and so
// on). Each function adds one to `app`. If the command line names it,
// app.parse() runs it and sets `exit_code`, which must outlive `app`.
#ifndef QUIRE_SERVER_COMMANDS_QUIRED_COMMANDS_H_
#define QUIRE_SERVER_COMMANDS_QUIRED_COMMANDS_H_

#include "CLI/CLI.hpp"

namespace quire {

// append: adds documents to an archive.
void AddAppendCommand(CLI::App& app, int& exit_code);

// build: creates an archive from inputs.
void AddBuildCommand(CLI::App& app, int& exit_code);

// check-config: checks a configuration file; exit code 2 if it has errors.
void AddCheckConfigCommand(CLI::App& app, int& exit_code);

// compact: encodes the last segments of an archive again.
void AddCompactCommand(CLI::App& app, int& exit_code);

// dictionary: creates an archive without documents, for build --like.
void AddDictionaryCommand(CLI::App& app, int& exit_code);

// inspect: prints the contents of an archive and the cost of serving it.
void AddInspectCommand(CLI::App& app, int& exit_code);

// join: makes one archive of parts with one encoding.
void AddJoinCommand(CLI::App& app, int& exit_code);

// plan: predicts archives of some inputs, and recommends one.
void AddPlanCommand(CLI::App& app, int& exit_code);

// recompress: converts an archive to another codec.
void AddRecompressCommand(CLI::App& app, int& exit_code);

// redact: removes documents from an archive.
void AddRedactCommand(CLI::App& app, int& exit_code);

// repair: replaces the damaged parts of an archive by those of copies.
void AddRepairCommand(CLI::App& app, int& exit_code);

// salvage: saves the documents of a damaged archive that still decode.
void AddSalvageCommand(CLI::App& app, int& exit_code);

// serve: serves until SIGTERM or SIGINT. Exit code 0 after a drain, 1 if it
// could not start, 2 for an error in the command line or the configuration
// file.
void AddServeCommand(CLI::App& app, int& exit_code);

// token new: creates a token and its line for the file of `quired serve
// --access`.
void AddTokenCommand(CLI::App& app, int& exit_code);

// verify: reads and decodes a whole archive and reports damage.
void AddVerifyCommand(CLI::App& app, int& exit_code);

}  // namespace quire

#endif  // QUIRE_SERVER_COMMANDS_QUIRED_COMMANDS_H_
