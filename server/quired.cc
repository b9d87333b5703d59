// SPDX-License-Identifier: GPL-3.0-or-later
//
// The daemon and the offline verbs.
#include <iostream>

#include "server/verbs/build_verb.h"
#include "server/verbs/inspect_verb.h"
#include "server/verbs/serve_verb.h"
#include "server/verbs/verb_support.h"
#include "server/verbs/verify_verb.h"

#include "CLI/CLI.hpp"

int main(int argc, char** argv) {
  CLI::App app("Builds, checks and serves compressed document archives",
               "quired");
  // Not "exactly one": then a misspelt verb is said to be missing, not unknown.
  app.require_subcommand(0, 1);
  int exit_code = quire::kExitGood;
  quire::AddBuildVerb(app, exit_code);
  quire::AddVerifyVerb(app, exit_code);
  quire::AddInspectVerb(app, exit_code);
  quire::AddServeVerb(app, exit_code);
  try {
    app.parse(quire::ArgumentsForParse(argc, argv));
  } catch (const CLI::ParseError& error) {
    // 0 for --help.
    return app.exit(error) == 0 ? quire::kExitGood : quire::kExitUsage;
  }
  if (app.get_subcommands().empty()) {
    std::cerr << app.help();
    return quire::kExitUsage;
  }
  return exit_code;
}
