// SPDX-License-Identifier: GPL-3.0-or-later
//
// The inputs of `quired build`: options that select the entries that become
// documents, and messages about the others.
#ifndef QUIRE_SERVER_COMMANDS_BUILD_INPUTS_H_
#define QUIRE_SERVER_COMMANDS_BUILD_INPUTS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"

#include "server/commands/remote_paths.h"
#include "server/commands/store_options.h"
#include "server/ingest/build_options.h"
#include "server/ingest/input_failures.h"
#include "server/ingest/sources/source.h"

namespace quire {

struct BuildInputOptions {
  // The stores of inputs that are URLs.
  StoreArguments store;
  std::vector<std::string> inputs;
  std::optional<uint64_t> input_size_bytes_max;
  uint64_t window_size_bytes_max = kWindowSizeBytesDefault;
  bool expand = false;
  std::string expand_ids = "path";
  IdRuleOptions id_rules;
  // Empty or "lines".
  std::string split;
  // Without its delimiter, which is text here.
  LineSplit line_split;
  // NAME or NAME=PATH.
  std::vector<std::string> fields;
  std::string delimiter;
  // WARCs and ARCs are kept as documents alone, or as files too whatever that
  // takes.
  bool records_only = false;
  bool deposited_files = false;
  bool keep_going = false;
  bool verbose = false;

  DepositMode deposits() const {
    return records_only      ? DepositMode::kOff
           : deposited_files ? DepositMode::kAll
                             : DepositMode::kAuto;
  }
};

// `options` must outlive `subcommand`.
void AddInputOptions(CLI::App& subcommand, BuildInputOptions& options);

// Adds only the options that split files, or that limit the input, for a
// subcommand without the rest.
void AddSplitOptions(CLI::App& subcommand, BuildInputOptions& options);
void AddInputLimitOptions(CLI::App& subcommand, BuildInputOptions& options);

// Errors: InvalidArgument  invalid options; for the usage error.
absl::StatusOr<SourceOptions> MakeSourceOptions(
    const BuildInputOptions& options, const std::string& spool_directory);

// Returns an error unless the archive at `output`, whose parent is the existing
// directory `output_directory`, lies outside all inputs: an archive that is
// written into its own input would become part of itself. `option` names the
// archive in the message.
// Errors: InvalidArgument  for the usage error.
absl::Status CheckOutsideInputs(const std::string& option,
                                const std::string& output,
                                const std::string& output_directory,
                                const BuildInputOptions& options);

// Receives notes about the inputs' entries and prints them to standard error:
// each at once if `verbose`, otherwise the first few at the end.
// Thread-compatible.
class InputReport {
 public:
  explicit InputReport(const BuildInputOptions& options);
  InputReport(const InputReport&) = delete;
  InputReport& operator=(const InputReport&) = delete;

  // For BuildOptions; valid as long as the report.
  NoteListener listener();

  // Null unless the build should continue after failures.
  InputFailures* failures() { return keep_going_ ? &failures_ : nullptr; }

  // Prints entries that may have been handled other than intended, if any.
  void PrintWarnings(const SkippedEntries& skipped) const;
  // Prints suggestions for other options.
  void PrintHints(const SkippedEntries& skipped) const;

 private:
  // Notes that are sentences: their number, and the first ones.
  struct Sentences {
    uint64_t count = 0;
    std::vector<std::string> first;
  };

  void Hear(EntryNote note, const std::string& text);
  // Prints a warning unless there are none: "N" and `one` or `many`.
  void PrintSentences(const Sentences& sentences, const char* one,
                      const char* many) const;

  const bool keep_going_;
  const bool verbose_;
  const bool expand_;
  InputFailures failures_;
  uint64_t unexpanded_count_ = 0;
  Sentences misnamed_;
  Sentences foreign_;
  Sentences bad_records_;
  Sentences tolerated_;
  Sentences repeated_ids_;
  Sentences irregular_records_;
};

// Makes local paths of inputs that are URLs.
// Errors: as RemotePaths::OpenInput().
absl::Status OpenRemoteInputs(RemotePaths& paths, BuildInputOptions& options);

// Opens all inputs, in order. With `failures`, inputs that cannot be opened are
// skipped.
// Errors: those of OpenSource(); that of the last input if none can be opened.
absl::StatusOr<std::vector<std::unique_ptr<Source>>> OpenInputs(
    const std::vector<std::string>& inputs, const SourceOptions& options,
    InputFailures* failures);

}  // namespace quire

#endif  // QUIRE_SERVER_COMMANDS_BUILD_INPUTS_H_
