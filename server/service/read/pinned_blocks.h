// SPDX-License-Identifier: GPL-3.0-or-later
//
// Blocks that several answers of one call hold together, each counted once.
#ifndef QUIRE_SERVER_SERVICE_READ_PINNED_BLOCKS_H_
#define QUIRE_SERVER_SERVICE_READ_PINNED_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "absl/types/span.h"

#include "codecs/base/positions.h"
#include "server/service/read/answer.h"
#include "server/service/read/answer_plan.h"
#include "server/storage/block_store.h"

namespace quire {

// Blocks of the shareable answers of a batch. Items come in order of their
// offsets, so that neighbours share a block. If each item counted its block, a
// batch of short ranges would fill its window with a few blocks: too few to
// keep the disk and the decoders busy.
//
// Counting a block once requires that it is in memory once. The store reads a
// second copy of a block that its cache has evicted; Share() makes answers keep
// the first.
// Thread-compatible.
class PinnedBlocks {
 public:
  // Returns the memory of the blocks of `slices` not pinned yet, in bytes.
  uint64_t NewBytes(absl::Span<const PlannedSlice> slices) const;

  // Pins each block of `slices`, once per call.
  void Pin(absl::Span<const PlannedSlice> slices);

  // Makes `pieces` reference the copies that earlier answers reference.
  // REQUIRES: `blocks` are pinned, and pieces[i] is of blocks[i].
  void Share(absl::Span<const BlockAddress> blocks,
             std::vector<BlockPiece>& pieces);

  // Undoes one Pin() of each of `blocks`. Returns the bytes of the blocks that
  // have no pin left, and moves their memory to `freed`, for the caller to
  // release without a lock.
  // REQUIRES: `blocks` are pinned.
  uint64_t Unpin(absl::Span<const BlockAddress> blocks,
                 std::vector<BlockStore::BlockPtr>& freed);

  size_t block_count() const { return blocks_.size(); }

 private:
  struct Pinned {
    uint64_t pin_count = 0;
    uint64_t size_bytes = 0;
    // Null until the first answer has it.
    BlockStore::BlockPtr block;
  };

  struct Hash {
    size_t operator()(const BlockAddress& block) const {
      return absl::HashOf(block.segment_index, block.block_index);
    }
  };

  absl::flat_hash_map<BlockAddress, Pinned, Hash> blocks_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_READ_PINNED_BLOCKS_H_
