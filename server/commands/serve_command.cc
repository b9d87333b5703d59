// SPDX-License-Identifier: GPL-3.0-or-later
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "server/commands/config_file.h"
#include "server/commands/private_clients.h"
#include "server/commands/quired_commands.h"
#include "server/commands/serve_arguments.h"
#include "server/commands/serve_reload.h"
#include "server/commands/server_run.h"
#include "server/commands/subcommand_support.h"
#include "server/service/logging/server_log.h"
#include "server/service/server.h"

namespace quire {
namespace {

constexpr char kServeFooter[] =
    R"(Clients use NAME, by default the last part of PATH without .quire. Without
--tls-cert calls are not encrypted, without --access everyone may read everything:
then listen on loopback or a private network only.

--config has these options as keys, such as memory = "4GiB", or in tables: [tls] has
cert and key, [archives] has NAME = "PATH". An environment variable such as
QUIRED_MEMORY precedes it, the command line both. quired check-config checks it.

SIGTERM and SIGINT drain and stop, a second one at once. SIGHUP reads the files again,
and applies archives, quota, log level, certificate, access rules and withdrawn
documents without dropping calls; the log names other changes, which need a restart.

--private is for programs that share a server of their own, such as the Python
package: it returns once DIR/socket answers, logs to DIR/log, ends when no process
has DIR/clients open for writing, and removes DIR, which must have the mode 0700.

A TIME is a number of seconds, or has units: 500ms, 10s, 2m, 1h30m, 14d. A QUOTA
counts calls and bytes per second. --memory auto takes 7/8 of the limit of the cgroup,
or else half of what is available. docs/operating.md says more.

Example:
  quired serve docs.quire --listen 127.0.0.1:7420 --metrics 127.0.0.1:7421 --memory 1GiB
)";

// For a malformed command line: the log format is not known yet.
void SayUsage(absl::string_view message) {
  std::fprintf(stderr, "quired: %s\n", PrintableMessage(message).c_str());
}

void SayUsage(const std::vector<std::string>& messages) {
  for (const std::string& message : messages) {
    SayUsage(message);
  }
}

// Continues in the background for the clients of --private; returns an exit
// code in the process that has started it. Errors: those of PrivateClients.
absl::StatusOr<std::optional<int>> StartPrivate(
    const ServeArguments& arguments, ServerOptions& options,
    std::unique_ptr<PrivateClients>& clients) {
  QUIRE_ASSIGN_OR_RETURN(clients,
                         PrivateClients::Open(arguments.private_directory));
  options.listen_address = clients->listen_address();
  return clients->Detach();
}

void WarnOfNoArchives(const ServeArguments& arguments, ServerLog& log) {
  const bool has_directory = !arguments.archives_directory.empty();
  log.Say(
      LogLevel::kWarning,
      absl::StrCat(
          has_directory ? "--archives-dir " : "--archives-list ",
          has_directory ? arguments.archives_directory
                        : arguments.archives_list,
          " holds no archives: nothing is served; add some and send SIGHUP"));
}

int Serve(const ServeArguments& arguments, ServeReload reload) {
  const auto refuse = [](const absl::Status& status) {
    SayUsage(status.message());
    return absl::IsInvalidArgument(status) ? kExitUsage : kExitFailed;
  };
  absl::StatusOr<DirectoryArchives> in_directory =
      FindDirectoryArchives(arguments);
  if (!in_directory.ok()) {
    return refuse(in_directory.status());
  }
  std::string note;
  absl::StatusOr<ServerOptions> options =
      MakeServerOptions(arguments, *in_directory, note);
  if (!options.ok()) {
    return refuse(options.status());
  }
  std::unique_ptr<PrivateClients> clients;
  if (!arguments.private_directory.empty()) {
    const absl::StatusOr<std::optional<int>> exit_code =
        StartPrivate(arguments, *options, clients);
    if (!exit_code.ok()) {
      return refuse(exit_code.status());
    }
    if (exit_code->has_value()) {
      return **exit_code;
    }
  }
  ServerLog log(
      arguments.log_format == "json" ? LogFormat::kJson : LogFormat::kText,
      LogLevelOf(arguments));
  options->log = [&log](LogLevel level, const std::string& message) {
    log.Say(level, message);
  };
  options->report_damage = [&log](const std::string& message) {
    log.Say(LogLevel::kError, message);
  };
  if (!note.empty()) {
    log.Say(LogLevel::kInfo, note);
  }
  for (const std::string& warning : arguments.warnings) {
    log.Say(LogLevel::kWarning, warning);
  }
  if (options->archives.empty()) {
    WarnOfNoArchives(arguments, log);
  }
  PrepareServerProcess();
  // Readable when an archive should be checked.
  const UniqueFd check_wanted(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  options->check_archives = [&check_wanted] {
    const uint64_t one = 1;
    // The counter is never full.
    (void)!write(check_wanted.get(), &one, sizeof(one));
  };
  options->is_stop_wanted = [&clients] {
    return IsStopPending() || (clients != nullptr && clients->AreGone());
  };
  absl::StatusOr<std::unique_ptr<Server>> server = Server::Listen(*options);
  if (absl::IsCancelled(server.status()) && options->is_stop_wanted()) {
    log.Say(LogLevel::kInfo, "stopped");
    return kExitGood;
  }
  if (!server.ok()) {
    log.Say(LogLevel::kError, server.status().message());
    return server.status().code() == absl::StatusCode::kInvalidArgument
               ? kExitUsage
               : kExitFailed;
  }
  reload.Begin(
      {.archives = options->archives, .default_quota = options->default_quota},
      arguments.archives_directory, *std::move(in_directory));
  return RunServer(**server, arguments.drain,
                   {.reload = [&] { return reload.Run(**server, log); },
                    .check = [&] { return reload.Check(**server); },
                    .check_interval = arguments.reload_interval,
                    .retry = [&] { return reload.Retry(**server); },
                    .check_wanted_fd = check_wanted.get()},
                   clients.get(), options->log);
}

// Returns the exit code.
int CheckConfig(const std::string& path) {
  CLI::App subcommand("", "serve");
  ServeArguments arguments;
  AddServeOptions(subcommand, arguments);
  AddServeKeys(subcommand, arguments);
  std::vector<std::string> faults =
      ApplyConfigFile(path, subcommand, PathChecks::kAll);
  for (const std::string& warning : arguments.warnings) {
    SayUsage(absl::StrCat("warning: ", path, ": ", warning));
  }
  if (faults.empty()) {
    std::string note;
    const auto in_directory = FindDirectoryArchives(arguments);
    absl::StatusOr<ServerOptions> options =
        in_directory.ok() ? MakeServerOptions(arguments, *in_directory, note)
                          : in_directory.status();
    if (options.ok()) {
      options->log = [&](LogLevel, const std::string& message) {
        SayUsage(absl::StrCat("warning: ", message));
      };
      for (const absl::Status& fault : Server::Check(*options)) {
        faults.push_back(absl::StrCat(path, ": ", fault.message()));
      }
    } else {
      faults.push_back(absl::StrCat(path, ": ", options.status().message()));
    }
  }
  SayUsage(faults);
  if (!faults.empty()) {
    return kExitUsage;
  }
  std::printf("%s: good\n", PrintableText(path).c_str());
  return kExitGood;
}

}  // namespace

void AddCheckConfigCommand(CLI::App& app, int& exit_code) {
  CLI::App* subcommand = app.add_subcommand(
      "check-config", "Check a configuration file of quired serve");
  auto path = std::make_shared<std::string>();
  subcommand->add_option("FILE", *path, "The file for quired serve --config")
      ->type_name("")
      ->required();
  subcommand->footer(
      "Reports with their lines unknown tables and keys, empty and malformed "
      "values and\nmissing paths, and all that would keep quired serve from "
      "opening its archives.\n");
  subcommand->callback([path, &exit_code] { exit_code = CheckConfig(*path); });
}

void AddServeCommand(CLI::App& app, int& exit_code) {
  CLI::App* subcommand =
      app.add_subcommand("serve", "Serve archives over gRPC until SIGTERM");
  auto arguments = std::make_shared<ServeArguments>();
  AddServeOptions(*subcommand, *arguments);
  subcommand->footer(kServeFooter);
  subcommand->callback([subcommand, arguments, &exit_code] {
    AddServeKeys(*subcommand, *arguments);
    std::vector<std::string> faults = ApplyEnvironment(*subcommand);
    for (std::string& warning : UnknownEnvironment(*subcommand)) {
      arguments->warnings.push_back(std::move(warning));
    }
    OptionValues given = ValuesOf(*subcommand);
    if (faults.empty() && !arguments->config.empty()) {
      faults =
          ApplyConfigFile(arguments->config, *subcommand, PathChecks::kNone);
    }
    if (!faults.empty()) {
      SayUsage(faults);
      exit_code = kExitUsage;
      return;
    }
    exit_code =
        Serve(*arguments, ServeReload(arguments->config, std::move(given),
                                      ValuesOf(*subcommand)));
  });
}

}  // namespace quire
