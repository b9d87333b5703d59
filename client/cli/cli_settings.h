// SPDX-License-Identifier: Apache-2.0
//
// The command line of `quire`: one tree of options, which parses, helps and
// becomes the man page.
#ifndef QUIRE_CLIENT_CLI_CLI_SETTINGS_H_
#define QUIRE_CLIENT_CLI_CLI_SETTINGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "client/cli/document_filter.h"
#include "client/quire/client.h"

namespace quire {

enum class ExportForm { kNone, kTar, kWarc, kDirectory };

// What the command line said, as it said it.
struct CliSettings {
  // Of all subcommands.
  std::string server = "127.0.0.1:7420";
  ChannelSecurity security;
  // Takes secrets that all users can read.
  bool allow_readable_secrets = false;
  std::string timeout = "30s";
  // "-" is standard output. An export's is the FILE of its form.
  std::string output = "-";
  bool json = false;
  bool quiet = false;
  bool verbose = false;
  // Binary data may go to a terminal.
  bool force = false;
  // "auto", "always" or "never".
  std::string progress = "auto";
  std::string encoding = "identity";
  // A `traceparent` header, sent with all calls. Empty: none.
  std::string trace_parent;
  // Unset: DefaultCacheDirectory().
  std::optional<std::string> cache_directory;

  // Of the subcommands that have them.
  std::string archive;
  std::vector<std::string> ids;
  std::string prefix;
  bool long_listing = false;
  bool null_separated = false;
  bool by_ordinal = false;
  std::optional<uint64_t> occurrence;
  // `get` has only the record types of these.
  FilterSettings filter;
  std::optional<std::string> at;
  // Of WARC records: whole, or what is the default.
  bool whole_records = false;
  bool payload = false;
  // Of each document: OFFSET:LENGTH.
  std::optional<std::string> part;
  std::string offset = "0";
  std::optional<std::string> length;
  bool ranges = false;
  bool unordered = false;
  std::string output_dir;
  std::string items_file = "-";
  ExportForm export_form = ExportForm::kNone;
  bool keep_going = false;
};

// Exit codes.
inline constexpr int kExitGood = 0;
inline constexpr int kExitNotFoundOrDamaged = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitUnreachable = 3;

// Fills `app` with the tree, which writes into `settings` when it parses. Both
// must live as long as the app is used.
void DefineCommandLine(CLI::App& app, CliSettings& settings);

// Parses the command line of main() into the settings that `app` was defined
// with.
// Throws CLI::ParseError, as CLI::App::parse() does; CLI::App::exit() is for
// it.
void ParseCommandLine(CLI::App& app, CliSettings& settings, int argc,
                      const char* const* argv);

// As duration_text.h says; at least a millisecond.
// Errors: InvalidArgument  not of that form, or not positive.
absl::StatusOr<absl::Duration> ParseTimeout(const std::string& text);

// $XDG_CACHE_HOME/quire, else ~/.cache/quire; empty if the environment has
// neither.
std::string DefaultCacheDirectory();

// Errors: InvalidArgument  what is wrong with the settings.
absl::StatusOr<ClientOptions> MakeClientOptions(const CliSettings& settings);

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_CLI_SETTINGS_H_
