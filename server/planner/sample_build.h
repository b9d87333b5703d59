// SPDX-License-Identifier: GPL-3.0-or-later
//
// An archive of a sample, built, measured and removed.
#ifndef QUIRE_SERVER_PLANNER_SAMPLE_BUILD_H_
#define QUIRE_SERVER_PLANNER_SAMPLE_BUILD_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

#include "server/ingest/build_pipeline.h"
#include "server/planner/collection_sample.h"

namespace quire {

// A directory with a name of its own in `parent`, removed with what is in it.
class WorkDirectory {
 public:
  // Errors: Unavailable  `parent` cannot hold it.
  static absl::StatusOr<WorkDirectory> Create(const std::string& parent);
  WorkDirectory(WorkDirectory&& other) noexcept;
  WorkDirectory& operator=(WorkDirectory&&) = delete;
  ~WorkDirectory();

  const std::string& path() const { return path_; }

 private:
  explicit WorkDirectory(std::string path);

  // Empty once it has been moved from.
  std::string path_;
};

// Sizes are bytes.
struct BuiltSample {
  double text_bytes = 0;
  // All files but the dictionary's.
  double stored_bytes = 0;
  // The dictionary, as text and as a file; 0 without one.
  double dictionary_bytes = 0;
  double dictionary_file_bytes = 0;
  // What a server holds of it in memory, without the dictionary.
  double memory_bytes = 0;
  double build_seconds = 0;
};

// Builds an archive of `part` in `directory` by BuildArchive().
// Errors: those of BuildArchive() and Archive::Open().
absl::StatusOr<BuiltSample> BuildSample(const CollectionSample& sample,
                                        CollectionSample::Part part,
                                        const BuildOptions& options,
                                        const std::string& directory);

// What reading a range at a random place costs, on average.
struct RangeCost {
  // To read blocks from memory and to decode them, on one core.
  double cpu_seconds = 0;
  double blocks = 0;
  // All blocks of a range together, as stored.
  double stored_bytes = 0;
};

// Reads ranges of the archive that BuildSample() left in `directory`.
// Errors: those of Archive.
absl::StatusOr<RangeCost> MeasureRanges(const std::string& directory,
                                        uint64_t range_size_bytes);

}  // namespace quire

#endif  // QUIRE_SERVER_PLANNER_SAMPLE_BUILD_H_
