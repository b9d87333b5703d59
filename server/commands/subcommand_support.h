// SPDX-License-Identifier: GPL-3.0-or-later
//
// Support for the subcommands of quired: exit codes, messages, and options that
// several have.
#ifndef QUIRE_SERVER_COMMANDS_SUBCOMMAND_SUPPORT_H_
#define QUIRE_SERVER_COMMANDS_SUBCOMMAND_SUPPORT_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "codecs/base/duration_text.h"
#include "server/commands/store_options.h"

namespace quire {

// Exit codes of quired.
inline constexpr int kExitGood = 0;
// Not found, damaged, or the work failed.
inline constexpr int kExitFailed = 1;
// The command line is malformed.
inline constexpr int kExitUsage = 2;

// Returns the program's arguments in the order that CLI::App::parse() expects
// of a vector: last first, and without the program's name. CLI11 parses "[a,b]"
// as a list of two, but it may be the name of a file: this returns "./[a,b]"
// for it.
std::vector<std::string> ArgumentsForParse(int argc, const char* const* argv);

// Writes "quired: MESSAGE" to stderr, fit for terminals; returns kExitFailed.
int ReportFailure(const absl::Status& status);

// Reports an error in the command line, with a hint at --help; returns
// kExitUsage.
int ReportUsage(absl::string_view subcommand, absl::string_view message);

// A subcommand and its options, which live as long as the subcommand.
template <typename Options>
struct Subcommand {
  CLI::App* app;
  Options* options;
};

// Adds a subcommand to `app`: if the command line names it, app.parse() calls
// `run` with its options and sets `exit_code`, which must outlive `app`.
template <typename Options, typename Run>
Subcommand<Options> AddSubcommand(CLI::App& app, int& exit_code,
                                  const std::string& name,
                                  const std::string& description,
                                  const std::string& footer, Run run) {
  auto options = std::make_shared<Options>();
  CLI::App* const subcommand = app.add_subcommand(name, description);
  subcommand->footer(footer);
  subcommand->callback(
      [options, run, &exit_code] { exit_code = run(*options); });
  return {subcommand, options.get()};
}

// Returns an error if `path`, which `what` names in the message, is a URL such
// as s3://bucket/name, also with one slash, and not an existing local path.
// Errors: InvalidArgument for the usage error.
absl::Status CheckLocalPath(const std::string& what, const std::string& path);

// Adds the argument ARCHIVE, which is required. `archive` must outlive
// `subcommand`.
void AddArchiveArgument(CLI::App& subcommand, std::string& archive);

// The same for a subcommand that only reads it, which may lie in an object
// store: RemotePaths opens it.
void AddReadArchiveArgument(CLI::App& subcommand, std::string& archive,
                            StoreArguments& store);

// Adds the options that `subcommand` had in the last release, hidden: for one
// release they are accepted and ignored, and `warn` gets a message for each
// that is given, in any source. They are not "configurable", which ValuesOf()
// (config_file.h) leaves out.
void AddRemovedOptions(CLI::App& subcommand,
                       const std::function<void(const std::string&)>& warn);

// Adds an option that takes a size such as 64KiB; --help shows the default in
// that form. `size_bytes` holds the default and must outlive `subcommand`.
CLI::Option* AddByteSizeOption(CLI::App& subcommand, const std::string& name,
                               uint64_t& size_bytes,
                               const std::string& description);

// Adds one without a default; `description` must explain an unset value.
CLI::Option* AddByteSizeOption(CLI::App& subcommand, const std::string& name,
                               std::optional<uint64_t>& size_bytes,
                               const std::string& description);

// Adds an option that takes a time such as 10s (duration_text.h); --help shows
// the default in that form. `time` holds the default and must outlive
// `subcommand`.
CLI::Option* AddTimeOption(CLI::App& subcommand, const std::string& name,
                           absl::Duration& time, const DurationRange& range,
                           const std::string& description);

// Raises the limit on open files to the system's maximum, for archives of many
// segments, each of which is a file, and servers of many connections.
void RaiseFileLimit();

// Time since its construction.
class Stopwatch {
 public:
  double Seconds() const;

 private:
  const std::chrono::steady_clock::time_point start_ =
      std::chrono::steady_clock::now();
};

// Returns "12.3%"; "0%" if `whole` is 0.
std::string FormatPercent(uint64_t part, uint64_t whole);

// Returns "3:07" or "1:02:03".
std::string FormatDuration(double seconds);

}  // namespace quire

#endif  // QUIRE_SERVER_COMMANDS_SUBCOMMAND_SUPPORT_H_
