// SPDX-License-Identifier: GPL-3.0-or-later
//
// The parts that all subcommands that build or change an archive have in
// common: progress, signals, failures, and reading the result.
#ifndef QUIRE_SERVER_COMMANDS_BUILD_RUN_H_
#define QUIRE_SERVER_COMMANDS_BUILD_RUN_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/progress_meter.h"
#include "server/archive/archive.h"
#include "server/commands/encoding_options.h"
#include "server/commands/interrupt_flag.h"

namespace quire {

// Returns `path` without slashes at its end.
std::string TrimSlashes(std::string path);

// Sets those of the options of a change of `archive` in place that depend on
// it. Returns its path without symbolic links.
// Errors: as Archive::ReadOutline().
absl::StatusOr<std::string> PrepareChange(const std::string& archive,
                                          const EncodingOptions& encoding,
                                          BuildOptions& build);

// During its lifetime the first signal cancels the build. Construct it when all
// inputs are open: until then no file has a name, so a signal may end the
// process at once. One at a time in a process.
class BuildRun {
 public:
  // Sets on_progress and cancel of `build`, which must not be used after this.
  // The progress is shown if standard error is a terminal.
  BuildRun(BuildOptions& build, bool shows_progress);
  BuildRun(const BuildRun&) = delete;
  BuildRun& operator=(const BuildRun&) = delete;

  const InterruptFlag& interrupt() const { return interrupt_; }

  // Reports the failure, with a hint if it left a build of `resumed_output`,
  // which may be empty. Ends the process if a signal caused it. Returns the
  // exit code.
  int Fail(const absl::Status& status, const std::string& resumed_output = "");

  // Opens the finished archive, which reads everything except the blocks back.
  absl::StatusOr<std::shared_ptr<const Archive>> ReadBack(
      const std::string& path);

 private:
  const InterruptFlag interrupt_;
  std::optional<ProgressMeter> meter_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_COMMANDS_BUILD_RUN_H_
