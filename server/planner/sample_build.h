// SPDX-License-Identifier: GPL-3.0-or-later
//
// An archive of a text or a sample of it, built, measured and removed.
#ifndef QUIRE_SERVER_PLANNER_SAMPLE_BUILD_H_
#define QUIRE_SERVER_PLANNER_SAMPLE_BUILD_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "server/ingest/build_pipeline.h"
#include "server/ingest/sources/source.h"

namespace quire {

// A directory with a unique name in `parent`, removed with its contents on
// destruction.
class WorkDirectory {
 public:
  // Errors: Unavailable  it cannot be created in `parent`.
  static absl::StatusOr<WorkDirectory> Create(const std::string& parent);
  WorkDirectory(WorkDirectory&& other) noexcept;
  WorkDirectory& operator=(WorkDirectory&&) = delete;
  ~WorkDirectory();

  const std::string& path() const { return path_; }

 private:
  explicit WorkDirectory(std::string path);

  // Empty after a move.
  std::string path_;
};

// Sizes are in bytes.
struct BuiltSample {
  double text_bytes = 0;
  // All files except the dictionary's.
  double stored_bytes = 0;
  // The dictionary, as text and as a file; 0 without one.
  double dictionary_bytes = 0;
  double dictionary_file_bytes = 0;
  // Memory that a server holds for it, without the dictionary.
  double memory_bytes = 0;
  double build_seconds = 0;
  // The part of it before the first block is encoded.
  double preparation_seconds = 0;
  // BuildSummary::omissions.
  std::vector<std::string> omissions;
};

// Builds an archive of `sources` in `directory` by BuildArchive().
// Errors: those of BuildArchive() and Archive::Open().
absl::StatusOr<BuiltSample> BuildSample(
    std::span<const std::unique_ptr<Source>> sources,
    const BuildOptions& options, const std::string& directory);

// Average cost of reading a range at a random offset.
struct RangeCost {
  // Time to read blocks from memory and to decode them, on one core.
  double cpu_seconds = 0;
  double blocks = 0;
  // Stored size of all blocks of a range together.
  double stored_bytes = 0;
};

// Reads ranges of the archive that BuildSample() left in `directory`.
// Errors: those of Archive.
absl::StatusOr<RangeCost> MeasureRanges(const std::string& directory,
                                        uint64_t range_size_bytes);

}  // namespace quire

#endif  // QUIRE_SERVER_PLANNER_SAMPLE_BUILD_H_
