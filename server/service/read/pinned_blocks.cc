// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/read/pinned_blocks.h"

#include <utility>

namespace quire {

uint64_t PinnedBlocks::NewBytes(absl::Span<const PlannedSlice> slices) const {
  uint64_t size_bytes = 0;
  for (const PlannedSlice& slice : slices) {
    size_bytes += blocks_.contains(slice.block) ? 0 : slice.fetched_size_bytes;
  }
  return size_bytes;
}

void PinnedBlocks::Pin(absl::Span<const PlannedSlice> slices) {
  for (const PlannedSlice& slice : slices) {
    Pinned& pinned = blocks_[slice.block];
    if (pinned.pin_count++ == 0) {
      pinned.size_bytes = slice.fetched_size_bytes;
    }
  }
}

void PinnedBlocks::Share(absl::Span<const BlockAddress> blocks,
                         std::vector<BlockPiece>& pieces) {
  for (size_t i = 0; i < blocks.size(); ++i) {
    Pinned& pinned = blocks_.at(blocks[i]);
    if (pinned.block == nullptr) {
      pinned.block = pieces[i].block;
    } else {
      pieces[i].block = pinned.block;
    }
  }
}

uint64_t PinnedBlocks::Unpin(absl::Span<const BlockAddress> blocks,
                             std::vector<BlockStore::BlockPtr>& freed) {
  uint64_t size_bytes = 0;
  for (const BlockAddress block : blocks) {
    const auto it = blocks_.find(block);
    if (--it->second.pin_count == 0) {
      size_bytes += it->second.size_bytes;
      freed.push_back(std::move(it->second.block));
      blocks_.erase(it);
    }
  }
  return size_bytes;
}

}  // namespace quire
