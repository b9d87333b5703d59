// SPDX-License-Identifier: GPL-3.0-or-later
//
// Upper bound on the slices that 1 MiB of a segment's text touches: a slice is
// a part of one run in one block.
#ifndef QUIRE_SERVER_ARCHIVE_INDEX_SLICE_COUNTER_H_
#define QUIRE_SERVER_ARCHIVE_INDEX_SLICE_COUNTER_H_

#include <cstdint>
#include <deque>

#include "server/archive/index/block_spans.h"

namespace quire {

// Takes the runs of one segment in order. Takes time for each block, and for
// each slice within 1 MiB of the ends of a run; holds 4 bytes per slice of 1
// MiB of text. Thread-compatible.
class SliceCounter {
 public:
  // Counts the slices of the stored text, for ranges within one run. `blocks`
  // must outlive the counter.
  explicit SliceCounter(const BlockSpans& blocks);

  // Counts ranges that begin in an earlier run or end in this one. Unnecessary
  // for a segment of one run.
  // REQUIRES: the stored text contains the run, which has one byte or more.
  void AddRun(uint64_t stored_offset, uint64_t size_bytes);

  // The count so far.
  uint32_t most() const { return most_; }

  // Upper bound on the memory of a counter of `slice_count` slices.
  static uint64_t EstimateBytes(uint32_t slice_count) {
    return (uint64_t{slice_count} + 1024) * sizeof(uint32_t);
  }

 private:
  // Adds slices of a range of the stored text that follows those added before.
  void AddSlices(uint64_t stored_offset, uint64_t size_bytes);
  void AddSlice(uint64_t size_bytes);
  // Drops all slices: no further range begins in them.
  void Restart();

  const BlockSpans& blocks_;
  // The last block of the previous run: runs often continue near it.
  uint64_t block_ = 0;
  // Sizes of the last slices, which one range of 1 MiB touches, and the sum of
  // all except the first. A larger size counts as 1 MiB.
  std::deque<uint32_t> slices_;
  uint64_t size_bytes_after_first_ = 0;
  uint32_t most_ = 0;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_INDEX_SLICE_COUNTER_H_
