// SPDX-License-Identifier: Apache-2.0
//
// The recipe of a reordered text: the stored bytes that make it up, in order.
#ifndef QUIRE_CODECS_REORDER_STORED_RUN_H_
#define QUIRE_CODECS_REORDER_STORED_RUN_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace quire {

// Bytes that are contiguous in the text and in the stored text.
struct StoredRun {
  uint64_t size_bytes = 0;
  // Offset in the stored text.
  uint64_t stored_offset = 0;

  bool operator==(const StoredRun&) const = default;
};

// Runs in the order of the text, merged where possible. Memory: 16 bytes each.
// Thread-compatible.
class RunList {
 public:
  // The next `size_bytes` of the text are stored at `stored_offset`.
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

  size_t size() const { return runs_.size(); }

  size_t MemoryBytes() const { return runs_.size() * sizeof(StoredRun); }

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
