// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/commands/rebuild_estimate.h"

#include <filesystem>
#include <memory>
#include <span>
#include <system_error>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "server/archive/deposited_files.h"
#include "server/commands/build_inputs.h"
#include "server/commands/interrupt_flag.h"
#include "server/ingest/sources/source.h"
#include "server/planner/collection_sample.h"
#include "server/planner/drive_plan.h"
#include "server/planner/plan.h"

namespace quire {
namespace {

// Options of a build without any.
absl::StatusOr<BuildOptions> DefaultBuildOptions(
    const EncodingOptions& encoding) {
  CLI::App build;
  EncodingOptions options;
  AddEncodingOptions(build, options);
  options.threads = encoding.threads;
  options.build_memory_bytes = encoding.build_memory_bytes;
  QUIRE_ASSIGN_OR_RETURN(BuildOptions made, MakeBuildOptions(options));
  made.cancel = InterruptFlag::flag();
  return made;
}

uint64_t DepositedSizeBytes(const Archive& archive) {
  uint64_t size_bytes = 0;
  for (const DepositedFile& file : archive.deposited_files().files()) {
    size_bytes += file.literal_size_bytes;
  }
  return size_bytes;
}

}  // namespace

absl::StatusOr<RebuildEstimate> EstimateRebuild(
    const std::string& path, const Archive& archive,
    const EncodingOptions& encoding) {
  PlanOptions options;
  std::error_code error;
  options.work_directory = std::filesystem::temp_directory_path(error).string();
  if (error) {
    return absl::UnavailableError(
        absl::StrCat("TMPDIR must name a directory for archives of a sample: ",
                     error.message()));
  }
  QUIRE_ASSIGN_OR_RETURN(options.drive, ParseDrive("ssd"));
  BuildInputOptions input;
  input.inputs = {path};
  QUIRE_ASSIGN_OR_RETURN(const SourceOptions source_options,
                         MakeSourceOptions(input, options.work_directory));
  QUIRE_ASSIGN_OR_RETURN(const std::vector<std::unique_ptr<Source>> sources,
                         OpenInputs(input.inputs, source_options, nullptr));
  QUIRE_ASSIGN_OR_RETURN(
      const CollectionSample sample,
      CollectionSample::Take(sources, {.size_bytes = kRebuildSampleSizeBytes,
                                       .cancel = InterruptFlag::flag()}));
  PlanCandidate candidate;
  QUIRE_ASSIGN_OR_RETURN(candidate.build, DefaultBuildOptions(encoding));
  QUIRE_ASSIGN_OR_RETURN(const Plan plan,
                         MakePlan(sample, std::span(&candidate, 1), options));
  const double rebuilt = plan.cells.front().size.size_bytes;
  return RebuildEstimate{.size_bytes = archive.info().stored_size_bytes,
                         .rebuilt_size_bytes = static_cast<uint64_t>(rebuilt) +
                                               DepositedSizeBytes(archive),
                         .sample_size_bytes = sample.size_bytes(),
                         .is_whole = sample.is_whole()};
}

}  // namespace quire
