// SPDX-License-Identifier: GPL-3.0-or-later
//
// Blocks that several answers of one call hold at once, each counted once.
#ifndef QUIRE_SERVER_SERVICE_READ_PINNED_BLOCKS_H_
#define QUIRE_SERVER_SERVICE_READ_PINNED_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/types/span.h"

#include "codecs/base/positions.h"
#include "server/service/read/answer.h"
#include "server/service/read/answer_plan.h"
#include "server/storage/block_store.h"

namespace quire {

// Blocks of the shareable answers of a batch. Items come in order of their
// offsets, so that neighbours lie in the same block: counted for each of them,
// a batch of short ranges would use up its window with a handful of blocks,
// which is too few for the disk and the decoders to work on.
//
// Counting a block once is right only if it is in memory once. The store makes
// a second copy of one that its cache has evicted meanwhile; Share() has
// answers keep the first.
// Thread-compatible.
class PinnedBlocks {
 public:
  // Memory of the blocks of `slices` that are not pinned yet, in bytes.
  uint64_t NewBytes(absl::Span<const PlannedSlice> slices) const;

  // Pins each block of `slices`, once for each call.
  void Pin(absl::Span<const PlannedSlice> slices);

  // Has `pieces` refer to the copies that answers before them refer to.
  // REQUIRES: `blocks` are pinned, and a piece is of the block in its place.
  void Share(absl::Span<const BlockAddress> blocks,
             std::vector<BlockPiece>& pieces);

  // Takes back one Pin() of each of `blocks`. Returns the bytes of those that
  // no one pins any more, and moves what held them in memory to `freed`, for
  // the caller to let go of without a lock.
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

  absl::btree_map<BlockAddress, Pinned> blocks_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_READ_PINNED_BLOCKS_H_
