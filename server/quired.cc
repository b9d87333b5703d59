// SPDX-License-Identifier: GPL-3.0-or-later
//
// quired: builds, checks, shows and serves archives. Each verb is a file in
// server/verbs.
#include "server/verbs/build_verb.h"
#include "server/verbs/inspect_verb.h"
#include "server/verbs/serve_verb.h"
#include "server/verbs/verify_verb.h"

#include "CLI/CLI.hpp"

int main(int argc, char** argv) {
  CLI::App app{
      "Compressed archives of documents: build, verify, inspect, serve",
      "quired"};
  app.require_subcommand(1);
  app.set_version_flag("--version", QUIRE_VERSION);
  int exit_code = 0;
  quire::AddBuildVerb(app, exit_code);
  quire::AddVerifyVerb(app, exit_code);
  quire::AddInspectVerb(app, exit_code);
  quire::AddServeVerb(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Help and version end well; all else is a mistake in the command line.
    return app.exit(error) == 0 ? 0 : 2;
  }
  return exit_code;
}
