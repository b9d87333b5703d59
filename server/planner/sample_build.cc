// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/planner/sample_build.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <random>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "server/archive/archive.h"

namespace quire {
namespace {

namespace fs = std::filesystem;

constexpr double kMeasuringSeconds = 0.3;
constexpr uint64_t kRangesMin = 20;

std::string ArchiveIn(const std::string& directory) {
  return absl::StrCat(directory, "/sample.quire");
}

// CPU time of the calling thread.
double ThreadSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) +
         static_cast<double>(now.tv_nsec) / 1e9;
}

// Returns the blocks of a range, each once.
absl::StatusOr<std::vector<BlockAddress>> BlocksOf(const Archive& archive,
                                                   LogicalRange range) {
  QUIRE_ASSIGN_OR_RETURN(const std::vector<BlockSlice> slices,
                         archive.Plan(range));
  std::vector<BlockAddress> blocks;
  blocks.reserve(slices.size());
  for (const BlockSlice& slice : slices) {
    blocks.push_back(slice.block);
  }
  std::ranges::sort(blocks);
  blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
  return blocks;
}

}  // namespace

absl::StatusOr<WorkDirectory> WorkDirectory::Create(const std::string& parent) {
  std::string path = absl::StrCat(parent, "/quired-plan-XXXXXX");
  if (mkdtemp(path.data()) == nullptr) {
    return absl::UnavailableError(absl::StrCat(
        parent,
        ": cannot hold archives of a sample; set TMPDIR to a directory that "
        "this user may write to"));
  }
  return WorkDirectory(std::move(path));
}

WorkDirectory::WorkDirectory(std::string path) : path_(std::move(path)) {}

WorkDirectory::WorkDirectory(WorkDirectory&& other) noexcept
    : path_(std::exchange(other.path_, {})) {}

WorkDirectory::~WorkDirectory() {
  if (!path_.empty()) {
    std::error_code error;
    fs::remove_all(path_, error);
  }
}

absl::StatusOr<BuiltSample> BuildSample(
    std::span<const std::unique_ptr<Source>> sources,
    const BuildOptions& options, const std::string& directory) {
  BuildOptions build = options;
  build.archive.replace = true;
  const auto started = std::chrono::steady_clock::now();
  std::chrono::duration<double> prepared{};
  build.on_progress = [&](const BuildProgress& progress) {
    if (progress.phase == BuildPhase::kIndex) {
      prepared = std::chrono::steady_clock::now() - started;
    }
  };
  QUIRE_ASSIGN_OR_RETURN(BuildSummary summary,
                         BuildArchive(ArchiveIn(directory), sources, build));
  const std::chrono::duration<double> elapsed =
      std::chrono::steady_clock::now() - started;
  QUIRE_ASSIGN_OR_RETURN(const ArchiveOutline outline,
                         Archive::ReadOutline(ArchiveIn(directory)));
  const ArchiveInfo& info = outline.info;
  return BuiltSample{
      .text_bytes = static_cast<double>(info.size_bytes),
      .stored_bytes = static_cast<double>(info.stored_size_bytes -
                                          info.dictionary_stored_size_bytes),
      .dictionary_bytes = static_cast<double>(info.dictionary_size_bytes),
      .dictionary_file_bytes =
          static_cast<double>(info.dictionary_stored_size_bytes),
      .memory_bytes = static_cast<double>(
          outline.memory_bytes -
          std::min(outline.memory_bytes, info.dictionary_size_bytes)),
      .build_seconds = elapsed.count(),
      .preparation_seconds = prepared.count(),
      .omissions = std::move(summary.omissions)};
}

absl::StatusOr<RangeCost> MeasureRanges(const std::string& directory,
                                        uint64_t range_size_bytes) {
  QUIRE_ASSIGN_OR_RETURN(const std::shared_ptr<const Archive> archive,
                         Archive::Open(ArchiveIn(directory)));
  const uint64_t size = std::min(range_size_bytes, archive->info().size_bytes);
  std::mt19937_64 random(1);
  std::uniform_int_distribution<uint64_t> starts(
      0, archive->info().size_bytes - size);
  const std::unique_ptr<PayloadCodec::Scratch> scratch =
      archive->codec().NewScratch();
  std::vector<uint8_t> text(archive->info().block_size_bytes_max);
  RangeCost sum;
  uint64_t count = 0;
  const double started = ThreadSeconds();
  while (count < kRangesMin || sum.cpu_seconds < kMeasuringSeconds) {
    QUIRE_ASSIGN_OR_RETURN(
        const std::vector<BlockAddress> blocks,
        BlocksOf(*archive, {LogicalOffset{starts(random)}, size}));
    for (const BlockAddress block : blocks) {
      QUIRE_RETURN_IF_ERROR(archive->ReadBlock(
          block, MutableByteView(text).first(archive->BlockSizeBytes(block)),
          *scratch));
      sum.stored_bytes +=
          static_cast<double>(archive->BlockExtent(block).size_bytes);
    }
    sum.blocks += static_cast<double>(blocks.size());
    sum.cpu_seconds = ThreadSeconds() - started;
    ++count;
  }
  const auto ranges = static_cast<double>(count);
  return RangeCost{.cpu_seconds = sum.cpu_seconds / ranges,
                   .blocks = sum.blocks / ranges,
                   .stored_bytes = sum.stored_bytes / ranges};
}

}  // namespace quire
