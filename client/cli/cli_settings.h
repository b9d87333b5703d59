// SPDX-License-Identifier: Apache-2.0
//
// Values of the command line of `quire`, and what they mean for its client.
#ifndef QUIRE_CLIENT_CLI_CLI_SETTINGS_H_
#define QUIRE_CLIENT_CLI_CLI_SETTINGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "client/cli/document_filter.h"
#include "client/quire/client.h"

namespace quire {

enum class ExportForm { kNone, kTar, kWarc, kDirectory };

// Those of `captures`, unparsed; `by_key` also of `get` and `ls`.
struct CaptureSettings {
  // Unset: all captures.
  std::optional<std::string> url;
  std::string match = "exact";
  std::optional<std::string> closest;
  // The URL, id or prefix is a key.
  bool by_key = false;
  bool newest_first = false;
  std::optional<uint64_t> limit;
};

// Values of the command line, unparsed.
struct CliSettings {
  // Options of all subcommands.
  std::string server = "127.0.0.1:7420";
  ChannelSecurity security;
  // Accepts secrets that all users can read.
  bool allow_readable_secrets = false;
  std::string timeout = "30s";
  // "-" is standard output. For an export the FILE of its form.
  std::string output = "-";
  bool json = false;
  bool quiet = false;
  bool verbose = false;
  // Prints binary data to a terminal.
  bool force = false;
  // "auto", "always" or "never".
  std::string progress = "auto";
  std::string encoding = "identity";
  // A `traceparent` header, sent with all calls. Empty: none.
  std::string trace_parent;
  // Unset: DefaultCacheDirectory().
  std::optional<std::string> cache_directory;

  // An archive that a private server opens: a directory, or a URL of a store.
  std::optional<std::string> archive_path;

  // Options of some subcommands.
  // Name of the archive on the server.
  std::string archive;
  // Contents to read; unset: any.
  std::optional<std::string> archive_uuid;
  // An earlier state: an export has only the documents after it.
  std::optional<std::string> since_uuid;
  std::vector<std::string> ids;
  std::string prefix;
  std::optional<std::string> delimiter;
  // Paths of deposited files to print.
  std::vector<std::string> files;
  bool long_listing = false;
  bool null_separated = false;
  // Lists deposited files, not documents.
  bool lists_files = false;
  bool by_ordinal = false;
  std::optional<uint64_t> occurrence;
  // `get` has only the record types and statuses of these, `captures` only the
  // times and `where`.
  FilterSettings filter;
  CaptureSettings captures;
  std::optional<std::string> at;
  // Prints WARC records whole instead of their payloads.
  bool whole_records = false;
  bool payload = false;
  // Exports what revisits refer to.
  bool with_targets = false;
  // Exports responses with the payload of an earlier one as revisits.
  bool revisit_duplicates = false;
  // OFFSET:LENGTH within each document.
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

// Parses the form of duration_text.h; at least a millisecond.
// Errors: InvalidArgument  another form, or not positive.
absl::StatusOr<absl::Duration> ParseTimeout(const std::string& text);

// Returns $XDG_CACHE_HOME/quire, else ~/.cache/quire; empty if the environment
// has neither.
std::string DefaultCacheDirectory();

// Errors: InvalidArgument names the invalid setting.
absl::StatusOr<ClientOptions> MakeClientOptions(const CliSettings& settings);

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_CLI_SETTINGS_H_
