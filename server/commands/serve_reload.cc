// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/commands/serve_reload.h"

#include <iterator>
#include <set>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "server/commands/serve_arguments.h"

namespace quire {
namespace {

// Options that are taken up, or mean nothing but at the start.
bool MayChange(const std::string& option) {
  return option == "archive" || option == "archives-dir" ||
         option == "skip-broken" || option == "quota" || option == "log-level";
}

std::string Shown(const OptionValues& values, const std::string& option) {
  const auto found = values.find(option);
  return found == values.end() ? "its default"
                               : absl::StrJoin(found->second, ", ");
}

}  // namespace

std::vector<LogLine> ServeReload::Run(Server& server, ServerLog& log) {
  std::vector<LogLine> lines;
  const std::vector<std::string> faults = Read(log, lines);
  for (const std::string& fault : faults) {
    lines.push_back({LogLevel::kWarning, fault});
  }
  changes_.is_wanted = faults.empty();
  if (!faults.empty()) {
    lines.push_back({LogLevel::kWarning,
                     "the configuration stays as it was: correct what the "
                     "lines above name, and send SIGHUP again"});
  }
  for (LogLine& line : server.Reload(changes_)) {
    lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<std::string> ServeReload::Read(ServerLog& log,
                                           std::vector<LogLine>& lines) {
  CLI::App subcommand("", "serve");
  ServeArguments arguments;
  AddServeOptions(&subcommand, &arguments);
  std::vector<std::string> faults = ApplyValues(given_, subcommand);
  if (faults.empty() && !config_.empty()) {
    faults = ApplyConfigFile(config_, subcommand, PathChecks::kNone);
  }
  if (!faults.empty()) {
    return faults;
  }
  std::string note;
  absl::StatusOr<ServerOptions> options = MakeServerOptions(arguments, note);
  if (!options.ok()) {
    return {std::string(options.status().message())};
  }
  changes_.archives = std::move(options->archives);
  changes_.default_quota = options->default_quota;
  log.SetLevel(LogLevelOf(arguments));
  NameWhatNeedsARestart(ValuesOf(subcommand), lines);
  return {};
}

void ServeReload::NameWhatNeedsARestart(const OptionValues& values,
                                        std::vector<LogLine>& lines) const {
  std::set<std::string> names;
  for (const OptionValues* some : {&in_force_, &values}) {
    for (const auto& [name, value] : *some) {
      names.insert(name);
    }
  }
  for (const std::string& name : names) {
    const std::string before = Shown(in_force_, name);
    const std::string now = Shown(values, name);
    if (before != now && !MayChange(name)) {
      lines.push_back({LogLevel::kWarning,
                       absl::StrCat(config_, ": ", name, " changed from ",
                                    before, " to ", now, ": needs a restart")});
    }
  }
}

}  // namespace quire
