// SPDX-License-Identifier: GPL-3.0-or-later
//
// The reaction of `quired serve` to SIGHUP.
#ifndef QUIRE_SERVER_COMMANDS_SERVE_RELOAD_H_
#define QUIRE_SERVER_COMMANDS_SERVE_RELOAD_H_

#include <set>
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

// Reads the configuration file and the directory of archives again, and applies
// to the server everything that can change while it runs. Reports other changes
// as needing a restart. If the configuration has a fault, none of it is
// applied, and the server only checks its present archives. Archives of a
// directory that looks unmounted stay open, unread. Thread-compatible.
class ServeReload {
 public:
  // `config` may be empty. `given` has the options of the command line and the
  // environment, which take precedence over the file; `in_force` adds the
  // file's options at the start.
  ServeReload(std::string config, OptionValues given, OptionValues in_force)
      : config_(std::move(config)),
        given_(std::move(given)),
        in_force_(std::move(in_force)) {}

  // Sets the initial state; `in_directory` is the content of `directory`, which
  // may be empty.
  void Begin(ServerChanges changes, std::string directory,
             DirectoryArchives in_directory) {
    changes_ = std::move(changes);
    directory_ = std::move(directory);
    in_directory_ = std::move(in_directory);
  }

  // Returns lines for the log. Blocks on I/O.
  std::vector<LogLine> Run(Server& server, ServerLog& log);

  // Opens again those of the present archives whose MANIFEST was replaced:
  // --reload-interval. Returns lines about changes, and about failures that are
  // not those of the last time. Blocks on I/O.
  std::vector<LogLine> Check(Server& server);

  // The same with Server::RetryUnconfirmed().
  std::vector<LogLine> Retry(Server& server);

 private:
  // Sets `changes_`, or returns the faults.
  std::vector<std::string> Read(ServerLog& log, std::vector<LogLine>& lines);
  // Returns why `found` must not replace the archives served from the
  // directory; empty if it may.
  std::string WhyKept(const ServeArguments& arguments,
                      const absl::StatusOr<DirectoryArchives>& found) const;
  void NameWhatNeedsARestart(const OptionValues& values,
                             std::vector<LogLine>& lines) const;

  const std::string config_;
  const OptionValues given_;
  const OptionValues in_force_;
  ServerChanges changes_;
  // Directory of archives, and the archives last applied from it.
  std::string directory_;
  DirectoryArchives in_directory_;
  // Texts about failures of the last Check() and Retry().
  std::set<std::string> failures_;
  std::set<std::string> retry_failures_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_COMMANDS_SERVE_RELOAD_H_
