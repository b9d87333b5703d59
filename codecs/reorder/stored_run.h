// SPDX-License-Identifier: Apache-2.0
//
// The recipe of a reordered text: the stored bytes that make it up, in order.
// server/archive/FORMAT.md, section 6.7, has its form on disk.
#ifndef QUIRE_CODECS_REORDER_STORED_RUN_H_
#define QUIRE_CODECS_REORDER_STORED_RUN_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace quire {

// Bytes that are contiguous in the text and in the stored text. The offset in
// the text is the sum of the sizes of the runs before it.
struct StoredRun {
  // Not 0 in a recipe.
  uint64_t size_bytes = 0;
  // Offset in the stored text. Runs may overlap there: a duplicate is stored
  // once.
  uint64_t stored_offset = 0;

  bool operator==(const StoredRun&) const = default;
};

// Builds a recipe front to back. Runs are in the order of the text, merged
// where possible: none continues the one before it in the stored text, so equal
// recipes are equal lists. Memory: 16 bytes per run, which is bounded only by
// the number of Append() calls; the caller limits it by MemoryBytes().
// Thread-compatible.
class RunList {
 public:
  // The next `size_bytes` of the text are stored at `stored_offset`. No effect
  // if `size_bytes` is 0. REQUIRES: stored_offset + size_bytes < 2^64.
  void Append(uint64_t size_bytes, uint64_t stored_offset) {
    if (size_bytes == 0) {
      return;
    }
    if (!runs_.empty() &&
        runs_.back().stored_offset + runs_.back().size_bytes == stored_offset) {
      runs_.back().size_bytes += size_bytes;
    } else {
      runs_.push_back({size_bytes, stored_offset});
    }
  }

  // Number of runs.
  size_t size() const { return runs_.size(); }

  // Bytes of the runs, without what the deque adds.
  size_t MemoryBytes() const { return runs_.size() * sizeof(StoredRun); }

  // Returns the runs. Frees its own memory as it copies, so that both together
  // take hardly more than the result.
  std::vector<StoredRun> Take() && {
    std::vector<StoredRun> runs;
    runs.reserve(runs_.size());
    for (; !runs_.empty(); runs_.pop_front()) {
      runs.push_back(runs_.front());
    }
    return runs;
  }

 private:
  // A deque: a vector would double to grow.
  std::deque<StoredRun> runs_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_REORDER_STORED_RUN_H_
