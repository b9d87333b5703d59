// SPDX-License-Identifier: GPL-3.0-or-later
//
// quired: builds, checks, shows and serves archives. Each subcommand is a file
// in server/commands.
#include <csignal>
#include <iostream>

#include "CLI/CLI.hpp"

#include "codecs/base/manual.h"
#include "codecs/base/program_main.h"
#include "server/commands/quired_commands.h"
#include "server/commands/subcommand_support.h"

namespace quire {
namespace {

Manual QuiredManual() {
  Manual manual;
  manual.version = QUIRE_VERSION;
  manual.exit_codes = {
      {"0", "success"},
      {"1", "not found, damaged or failed"},
      {"2", "a malformed command line or configuration"},
      {"3", "verify: the archive is missing or unreadable"},
      {"130", "interrupted by SIGINT (128 + its number); serve ends with 0"}};
  manual.environment = {
      {"GRPC_VERBOSITY",
       "messages of gRPC: NONE (the default), ERROR, INFO or DEBUG"}};
  manual.examples = {
      {"quired build -o docs.quire /usr/share/doc",
       "builds an archive from a directory"},
      {"quired verify docs.quire", "checks every block of it"},
      {"quired serve docs.quire --memory 1GiB --metrics 127.0.0.1:7421",
       "serves it on 127.0.0.1:7420"}};
  return manual;
}

}  // namespace
}  // namespace quire

int main(int argc, char** argv) {
  quire::RaiseFileLimit();
  // A limit on file sizes (ulimit -f) then causes EFBIG in writes.
  std::signal(SIGXFSZ, SIG_IGN);
  int exit_code = quire::kExitGood;
  return quire::RunProgram(
      "quired", "builds, checks and serves compressed archives of documents",
      quire::kExitFailed, [&](CLI::App& app) {
        // Not "exactly one": CLI11 would report a misspelt subcommand as
        // missing, not as unknown.
        app.require_subcommand(0, 1);
        quire::AddBuildCommand(app, exit_code);
        quire::AddAppendCommand(app, exit_code);
        quire::AddCompactCommand(app, exit_code);
        quire::AddDictionaryCommand(app, exit_code);
        quire::AddJoinCommand(app, exit_code);
        quire::AddPlanCommand(app, exit_code);
        quire::AddRecompressCommand(app, exit_code);
        quire::AddRedactCommand(app, exit_code);
        quire::AddVerifyCommand(app, exit_code);
        quire::AddRepairCommand(app, exit_code);
        quire::AddSalvageCommand(app, exit_code);
        quire::AddInspectCommand(app, exit_code);
        quire::AddServeCommand(app, exit_code);
        quire::AddCheckConfigCommand(app, exit_code);
        quire::AddTokenCommand(app, exit_code);
        quire::AttachManual(app, quire::QuiredManual());
        app.parse(quire::ArgumentsForParse(argc, argv));
        if (app.get_subcommands().empty()) {
          std::cerr << app.help();
          return quire::kExitUsage;
        }
        return exit_code;
      });
}
