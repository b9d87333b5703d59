// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/index/slice_counter.h"

#include <algorithm>

namespace quire {
namespace {

constexpr uint64_t kRangeSizeBytes = uint64_t{1} << 20;

}  // namespace

SliceCounter::SliceCounter(const BlockSpans& blocks) : blocks_(blocks) {
  if (blocks.block_count() > 0) {
    AddSlices(0, blocks.size_bytes());
    Restart();
  }
}

void SliceCounter::AddRun(uint64_t stored_offset, uint64_t size_bytes) {
  if (size_bytes <= 2 * kRangeSizeBytes) {
    AddSlices(stored_offset, size_bytes);
    return;
  }
  AddSlices(stored_offset, kRangeSizeBytes);
  Restart();
  AddSlices(stored_offset + size_bytes - kRangeSizeBytes, kRangeSizeBytes);
}

void SliceCounter::Restart() {
  slices_.clear();
  size_bytes_after_first_ = 0;
}

void SliceCounter::AddSlice(uint64_t size_bytes) {
  // A range that touches the first and the last slice has one byte or more of
  // each and all text between them.
  while (!slices_.empty() && size_bytes_after_first_ + 2 > kRangeSizeBytes) {
    slices_.pop_front();
    size_bytes_after_first_ -= slices_.empty() ? 0 : slices_.front();
  }
  const auto counted =
      static_cast<uint32_t>(std::min(size_bytes, kRangeSizeBytes));
  size_bytes_after_first_ += slices_.empty() ? 0 : counted;
  slices_.push_back(counted);
  most_ = std::max(most_, static_cast<uint32_t>(slices_.size()));
}

void SliceCounter::AddSlices(uint64_t stored_offset, uint64_t size_bytes) {
  const auto has = [&](uint64_t block) {
    return block < blocks_.block_count() &&
           stored_offset - blocks_.StartOf(block) < blocks_.SizeOf(block);
  };
  if (has(block_ + 1)) {
    ++block_;
  } else if (!has(block_)) {
    block_ = blocks_.BlockAt(stored_offset);
  }
  uint64_t left_in_block =
      blocks_.StartOf(block_) + blocks_.SizeOf(block_) - stored_offset;
  while (size_bytes > left_in_block) {
    AddSlice(left_in_block);
    size_bytes -= left_in_block;
    left_in_block = blocks_.SizeOf(++block_);
  }
  AddSlice(size_bytes);
}

}  // namespace quire
