// SPDX-License-Identifier: GPL-3.0-or-later
//
// What `quired serve` does on SIGHUP.
#ifndef QUIRE_SERVER_COMMANDS_SERVE_RELOAD_H_
#define QUIRE_SERVER_COMMANDS_SERVE_RELOAD_H_

#include <string>
#include <utility>
#include <vector>

#include "server/commands/config_file.h"
#include "server/service/base/log_line.h"
#include "server/service/logging/server_log.h"
#include "server/service/server.h"

namespace quire {

// Reads the configuration file and the directory of archives again, and has the
// server take up what can change while it runs. Of the rest it says what needs
// a restart. If anything is wrong with the configuration, none of it is taken
// up: the server looks at what it serves already. Thread-compatible.
class ServeReload {
 public:
  // `config` may be empty. `given` is what the command line and the environment
  // said, which take precedence over the file; `in_force` is that and what the
  // file said at the start.
  ServeReload(std::string config, OptionValues given, OptionValues in_force)
      : config_(std::move(config)),
        given_(std::move(given)),
        in_force_(std::move(in_force)) {}

  // What the server was started with.
  void Begin(ServerChanges changes) { changes_ = std::move(changes); }

  // Returns what happened, in lines for the log. Blocks on I/O.
  std::vector<LogLine> Run(Server& server, ServerLog& log);

 private:
  // Sets `changes_`, unless it returns what is wrong.
  std::vector<std::string> Read(ServerLog& log, std::vector<LogLine>& lines);
  void NameWhatNeedsARestart(const OptionValues& values,
                             std::vector<LogLine>& lines) const;

  const std::string config_;
  const OptionValues given_;
  const OptionValues in_force_;
  ServerChanges changes_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_COMMANDS_SERVE_RELOAD_H_
