// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/commands/build_run.h"

#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <system_error>

#include "absl/time/clock.h"

#include "codecs/base/status_macros.h"
#include "server/commands/build_summary.h"
#include "server/commands/subcommand_support.h"

namespace quire {

std::string TrimSlashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') {
    path.pop_back();
  }
  return path;
}

absl::StatusOr<std::string> PrepareChange(const std::string& archive,
                                          const EncodingOptions& encoding,
                                          BuildOptions& build) {
  QUIRE_ASSIGN_OR_RETURN(const ArchiveOutline outline,
                         Archive::ReadOutline(archive));
  std::error_code error;
  std::string path = std::filesystem::canonical(archive, error).string();
  build.seek_cost_bytes = SeekCostBytes(OutputDirectory(path));
  if (encoding.inflate.empty()) {
    build.inflate = outline.info.has_recipes;
  }
  return path;
}

BuildRun::BuildRun(BuildOptions& build, bool shows_progress) {
  if (shows_progress && isatty(STDERR_FILENO) != 0) {
    meter_.emplace(std::cerr, &absl::Now, ProgressMeterOptions{});
    build.on_progress = [this](const BuildProgress& progress) {
      meter_->Update(ToProgress(progress));
    };
  }
  build.cancel = InterruptFlag::flag();
}

int BuildRun::Fail(const absl::Status& status,
                   const std::string& resumed_output) {
  meter_.reset();
  const int exit_code = ReportFailure(status);
  if (!resumed_output.empty()) {
    PrintResumeHint(resumed_output);
  }
  interrupt_.EndProcessIfSet();
  return exit_code;
}

absl::StatusOr<std::shared_ptr<const Archive>> BuildRun::ReadBack(
    const std::string& path) {
  meter_.reset();
  return Archive::Open(path);
}

}  // namespace quire
