// SPDX-License-Identifier: GPL-3.0-or-later
//
// The options of `quired serve`, and their conversion to ServerOptions.
#ifndef QUIRE_SERVER_COMMANDS_SERVE_ARGUMENTS_H_
#define QUIRE_SERVER_COMMANDS_SERVE_ARGUMENTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "server/commands/server_run.h"
#include "server/commands/store_options.h"
#include "server/service/base/log_line.h"
#include "server/service/server_options.h"

namespace quire {

// The options of `quired serve`, as written. Empty: not given.
struct ServeArguments {
  // Each PATH or NAME=PATH.
  std::vector<std::string> archives;
  std::string archives_directory;
  std::string archives_list;
  bool allow_fewer_archives = false;
  bool skip_broken = false;
  std::string listen = ServerOptions().listen_address;
  // Directory that the clients of a private server share.
  std::string private_directory;
  bool listen_when_open = false;
  TlsFiles tls;
  std::string access;
  std::string withdrawn;
  // 0: no scrub.
  absl::Duration scrub_interval = absl::ZeroDuration();
  uint64_t scrub_rate_bytes = ScrubOptions().rate_bytes_per_second;
  std::string state_directory;
  std::string quota;
  std::string metrics;
  std::string memory;
  // See docs/operating.md, [experiment].
  std::string engine = "auto";
  uint32_t device_depth = ServerOptions().device_depth;
  std::string device_model;
  std::string direct_io = "off";
  std::string drive = "auto";
  StoreArguments store;
  // 0: never.
  absl::Duration store_stale_max = RemoteStoreOptions().stale_max;
  absl::Duration stall_timeout = absl::Seconds(60);
  // Infinite: only at SIGHUP.
  absl::Duration reload_interval = absl::InfiniteDuration();
  DrainTimes drain;
  absl::Duration connection_age = ServerOptions().connection_age;
  std::string log_format = "text";
  std::string log_level = "info";
  CallLogOptions call_log;
  std::string access_log_documents = "hashed";
  std::string config;
  // About removed options that were given, for the log.
  std::vector<std::string> warnings;
};

// Adds all options of the command line to `subcommand`. Both must outlive its
// parsing.
void AddServeOptions(CLI::App& subcommand, ServeArguments& arguments);

// Adds the keys that only a configuration file and the environment can set, for
// measurements: the table [experiment]; and gives the argument ARCHIVE to its
// key. Call it after the command line is parsed. `arguments` must outlive
// `subcommand`.
void AddServeKeys(CLI::App& subcommand, ServeArguments& arguments);

// Returns the archives of --archives-dir; none without it. Blocks on I/O.
// Errors: those of FindArchives(), after the name of the option.
absl::StatusOr<DirectoryArchives> FindDirectoryArchives(
    const ServeArguments& arguments);

// Reads the file of --archives-list. `in_directory` is the result of
// FindDirectoryArchives(). `note` gets the values chosen for "auto", for the
// log. Leaves `log` and `report_damage` empty. Blocks on I/O. Errors:
// InvalidArgument  invalid options, or an invalid list.
absl::StatusOr<ServerOptions> MakeServerOptions(
    const ServeArguments& arguments, const DirectoryArchives& in_directory,
    std::string& note);

// Returns the minimum log level.
LogLevel LogLevelOf(const ServeArguments& arguments);

}  // namespace quire

#endif  // QUIRE_SERVER_COMMANDS_SERVE_ARGUMENTS_H_
