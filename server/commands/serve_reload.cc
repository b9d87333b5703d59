// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/commands/serve_reload.h"

#include <set>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "codecs/base/byte_size.h"

namespace quire {
namespace {

// True for options that a reload applies, or that matter only at the start.
bool MayChange(const std::string& option) {
  return option == "archive" || option == "archives-dir" ||
         option == "archives-list" || option == "allow-fewer-archives" ||
         option == "skip-broken" || option == "quota" || option == "log-level";
}

std::string Shown(const OptionValues& values, const std::string& option) {
  const auto found = values.find(option);
  return found == values.end() ? "its default"
                               : absl::StrJoin(found->second, ", ");
}

// Removes failures that are in `known`, and sets it to all failures.
std::vector<LogLine> WithoutRepeated(std::vector<LogLine> lines,
                                     std::set<std::string>& known) {
  std::set<std::string> failures;
  std::erase_if(lines, [&](const LogLine& line) {
    if (line.level == LogLevel::kInfo) {
      return false;
    }
    failures.insert(line.text);
    return known.contains(line.text);
  });
  known = std::move(failures);
  return lines;
}

}  // namespace

std::vector<LogLine> ServeReload::Run(Server& server, ServerLog& log) {
  std::vector<LogLine> lines;
  const std::vector<std::string> faults = Read(log, lines);
  for (const std::string& fault : faults) {
    lines.push_back({LogLevel::kWarning, fault});
  }
  if (!faults.empty()) {
    changes_.is_wanted = false;
    lines.push_back({LogLevel::kWarning,
                     "the configuration stays unchanged: correct the faults "
                     "above and send SIGHUP again"});
  }
  for (LogLine& line : server.Reload(changes_)) {
    lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<LogLine> ServeReload::Check(Server& server) {
  return WithoutRepeated(server.ReloadGrown(changes_.archives), failures_);
}

std::vector<LogLine> ServeReload::Retry(Server& server) {
  return WithoutRepeated(server.RetryUnconfirmed(changes_.archives),
                         retry_failures_);
}

std::vector<std::string> ServeReload::Read(ServerLog& log,
                                           std::vector<LogLine>& lines) {
  CLI::App subcommand("", "serve");
  ServeArguments arguments;
  AddServeOptions(subcommand, arguments);
  AddServeKeys(subcommand, arguments);
  std::vector<std::string> faults = ApplyValues(given_, subcommand);
  if (faults.empty() && !config_.empty()) {
    faults = ApplyConfigFile(config_, subcommand, PathChecks::kNone);
  }
  if (!faults.empty()) {
    return faults;
  }
  absl::StatusOr<DirectoryArchives> found = FindDirectoryArchives(arguments);
  if (absl::IsInvalidArgument(found.status())) {
    return {std::string(found.status().message())};
  }
  const std::string why_kept = WhyKept(arguments, found);
  if (!found.ok() || !why_kept.empty()) {
    found = DirectoryArchives{};
  }
  std::string note;
  absl::StatusOr<ServerOptions> options =
      MakeServerOptions(arguments, *found, note);
  if (!options.ok()) {
    return {std::string(options.status().message())};
  }
  changes_ = {.archives = std::move(options->archives),
              .default_quota = options->default_quota,
              .is_wanted = why_kept.empty()};
  if (why_kept.empty()) {
    directory_ = arguments.archives_directory;
    in_directory_ = *std::move(found);
  } else {
    lines.push_back({LogLevel::kError, why_kept});
    for (const ArchiveArgument& archive : in_directory_.archives) {
      changes_.kept_archives.push_back(archive.name);
    }
  }
  for (const std::string& warning : arguments.warnings) {
    lines.push_back({LogLevel::kWarning, warning});
  }
  log.SetLevel(LogLevelOf(arguments));
  NameWhatNeedsARestart(ValuesOf(subcommand), lines);
  return {};
}

std::string ServeReload::WhyKept(
    const ServeArguments& arguments,
    const absl::StatusOr<DirectoryArchives>& found) const {
  const std::string& directory = arguments.archives_directory;
  const size_t count = in_directory_.archives.size();
  std::string reason;
  if (!found.ok()) {
    if (!arguments.allow_fewer_archives || !absl::IsNotFound(found.status())) {
      reason = std::string(found.status().message());
    }
  } else if (!directory.empty() && count > 0 &&
             !arguments.allow_fewer_archives) {
    if (found->archives.empty()) {
      reason =
          absl::StrCat("--archives-dir: ", directory, " holds no archives");
    } else if (directory == directory_ &&
               found->device != in_directory_.device) {
      reason = absl::StrCat("--archives-dir: ", directory,
                            " is on another device than before");
    }
  }
  return reason.empty()
             ? ""
             : absl::StrCat(reason, "; ",
                            FormatCounted(count, "archive from there stays",
                                          "archives from there stay"),
                            " open: mount it again and send SIGHUP, or give "
                            "--allow-fewer-archives to accept it");
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
