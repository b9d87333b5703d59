// SPDX-License-Identifier: GPL-3.0-or-later
//
// The inputs of `quired build`: options that say which of their entries become
// documents, and what is said of those that do not.
#ifndef QUIRE_SERVER_COMMANDS_BUILD_INPUTS_H_
#define QUIRE_SERVER_COMMANDS_BUILD_INPUTS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"

#include "server/ingest/input_failures.h"
#include "server/ingest/sources/source.h"

namespace quire {

struct BuildInputOptions {
  std::vector<std::string> inputs;
  std::optional<uint64_t> input_size_bytes_max;
  bool expand = false;
  std::string expand_ids = "path";
  IdRuleOptions id_rules;
  bool keep_going = false;
  bool verbose = false;
};

// `options` must outlive `subcommand`.
void AddInputOptions(CLI::App& subcommand, BuildInputOptions& options);

// The one of them that bounds what is read; for a subcommand without the rest.
void AddInputSizeMaxOption(CLI::App& subcommand, BuildInputOptions& options);

// Errors: InvalidArgument  options that make no sense; for the usage error.
absl::StatusOr<SourceOptions> MakeSourceOptions(
    const BuildInputOptions& options, const std::string& spool_directory);

// Hears what is said of the inputs' entries, and tells the user: of each at
// once if `verbose`, else of the first few in the end. All of it goes to
// standard error. Thread-compatible.
class InputReport {
 public:
  explicit InputReport(const BuildInputOptions& options);
  InputReport(const InputReport&) = delete;
  InputReport& operator=(const InputReport&) = delete;

  // For BuildOptions; valid as long as the report.
  NoteListener listener();

  // Null unless the build is to keep going.
  InputFailures* failures() { return keep_going_ ? &failures_ : nullptr; }

  // What may not be as it was meant. Nothing if all is well.
  void PrintWarnings(const SkippedEntries& skipped) const;
  // What could be done otherwise.
  void PrintHints(const SkippedEntries& skipped) const;

 private:
  void Hear(EntryNote note, const std::string& text);

  const bool keep_going_;
  const bool verbose_;
  const bool expand_;
  InputFailures failures_;
  uint64_t unexpanded_count_ = 0;
  uint64_t misnamed_count_ = 0;
  // Of the first.
  std::vector<std::string> misnamed_;
};

// Opens all inputs, in their order. With `failures` those that cannot be opened
// are left out.
// Errors: those of OpenSource(); that of the last input if none can be opened.
absl::StatusOr<std::vector<std::unique_ptr<Source>>> OpenInputs(
    const std::vector<std::string>& inputs, const SourceOptions& options,
    InputFailures* failures);

}  // namespace quire

#endif  // QUIRE_SERVER_COMMANDS_BUILD_INPUTS_H_
