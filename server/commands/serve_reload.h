// SPDX-License-Identifier: GPL-3.0-or-later
//
// What `quired serve` does on SIGHUP.
#ifndef QUIRE_SERVER_COMMANDS_SERVE_RELOAD_H_
#define QUIRE_SERVER_COMMANDS_SERVE_RELOAD_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

#include "server/commands/config_file.h"
#include "server/commands/serve_arguments.h"
#include "server/service/base/log_line.h"
#include "server/service/catalog/catalog.h"
#include "server/service/logging/server_log.h"
#include "server/service/server.h"

namespace quire {

// Reads the configuration file and the directory of archives again, and has the
// server take up what can change while it runs. Of the rest it says what needs
// a restart. If anything is wrong with the configuration, none of it is taken
// up: the server looks at what it serves already. Archives of a directory that
// looks unmounted stay open, unread. Thread-compatible.
class ServeReload {
 public:
  // `config` may be empty. `given` is what the command line and the environment
  // said, which take precedence over the file; `in_force` is that and what the
  // file said at the start.
  ServeReload(std::string config, OptionValues given, OptionValues in_force)
      : config_(std::move(config)),
        given_(std::move(given)),
        in_force_(std::move(in_force)) {}

  // What the server was started with; `in_directory` is what was found in
  // `directory`, which may be empty.
  void Begin(ServerChanges changes, std::string directory,
             DirectoryArchives in_directory) {
    changes_ = std::move(changes);
    directory_ = std::move(directory);
    in_directory_ = std::move(in_directory);
  }

  // Returns what happened, in lines for the log. Blocks on I/O.
  std::vector<LogLine> Run(Server& server, ServerLog& log);

 private:
  // Sets `changes_`, unless it returns what is wrong.
  std::vector<std::string> Read(ServerLog& log, std::vector<LogLine>& lines);
  // Why `found` is not to replace what is served from the directory; empty if
  // it is.
  std::string WhyKept(const ServeArguments& arguments,
                      const absl::StatusOr<DirectoryArchives>& found) const;
  void NameWhatNeedsARestart(const OptionValues& values,
                             std::vector<LogLine>& lines) const;

  const std::string config_;
  const OptionValues given_;
  const OptionValues in_force_;
  ServerChanges changes_;
  // The directory of archives, and what was last taken up from there.
  std::string directory_;
  DirectoryArchives in_directory_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_COMMANDS_SERVE_RELOAD_H_
