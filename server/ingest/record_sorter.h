// SPDX-License-Identifier: GPL-3.0-or-later
//
// Sorts more records than memory holds.
#ifndef QUIRE_SERVER_INGEST_RECORD_SORTER_H_
#define QUIRE_SERVER_INGEST_RECORD_SORTER_H_

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/ingest/sources/spool.h"

namespace quire {

// Sorted by the key, and by the value where keys are equal.
struct SortRecord {
  uint64_t key = 0;
  uint64_t value = 0;

  auto operator<=>(const SortRecord&) const = default;
};

// First all records are added, then taken. What does not fit into memory goes
// to a file without a name, in sorted runs that are merged.
// Thread-compatible.
class RecordSorter {
 public:
  // `directory` gets the file, if one is needed; `what` is what the records
  // are, for messages. `memory_bytes` is what the records in memory take at
  // most, but for one of each run.
  RecordSorter(std::string directory, std::string what, size_t memory_bytes)
      : directory_(std::move(directory)),
        what_(std::move(what)),
        memory_record_count_(
            std::max<size_t>(1, memory_bytes / sizeof(SortRecord))) {}

  // Errors: Unavailable  the directory cannot hold the file.
  absl::Status Add(const SortRecord& record);

  // No record comes any more; Next() may be called. Errors: as Add().
  absl::Status EndAdding();

  // The least of those not taken, if any is left.
  // Errors: Unavailable  the file cannot be read.
  absl::StatusOr<std::optional<SortRecord>> Next();

  // Runs in the file.
  size_t spilled_run_count() const { return spilled_run_count_; }

 private:
  struct Run {
    // What of it is in memory; taken up to `used`.
    std::vector<SortRecord> records;
    size_t used = 0;
    // What of it is in the file only.
    uint64_t offset = 0;
    uint64_t end = 0;
  };

  absl::Status Spill();
  absl::Status Refill(Run& run) const;

  std::string directory_;
  std::string what_;
  size_t memory_record_count_;
  std::vector<SortRecord> added_;
  std::optional<Spool> file_;
  std::vector<Run> runs_;
  size_t spilled_run_count_ = 0;
  // Records in memory of each run, while they are merged.
  size_t merged_record_count_ = 0;
  // The next of each run that has any, with the number of the run; the least
  // first, as a heap.
  std::vector<std::pair<SortRecord, size_t>> heap_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_RECORD_SORTER_H_
