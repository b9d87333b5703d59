// SPDX-License-Identifier: GPL-3.0-or-later
//
// Blocks that several answers of one call hold at once, each counted once.
#ifndef QUIRE_SERVER_SERVICE_READ_PINNED_BLOCKS_H_
#define QUIRE_SERVER_SERVICE_READ_PINNED_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/functional/function_ref.h"
#include "absl/types/span.h"

#include "codecs/base/positions.h"
#include "server/archive/archive.h"
#include "server/service/read/answer.h"
#include "server/storage/block_store.h"

namespace quire {

// What the answers of a batch pin. Its items come in order of their place, so
// that neighbours lie in the same block: were it counted for each of them, a
// batch of short ranges would use up its window with a handful of blocks, which
// is too few for the disk and the decoders to work on.
//
// Counting a block once is right only if it is in memory once. The store makes
// a second copy of one that its cache has let go of meanwhile; Share() sees to
// it that answers keep the first.
// Thread-compatible.
class PinnedBlocks {
 public:
  using SizeOf = absl::FunctionRef<uint64_t(BlockAddress)>;

  // What the blocks of `slices` take in bytes, without those that are pinned.
  // `size_of` says what one takes, and the same each time.
  uint64_t NewBytes(const std::vector<BlockSlice>& slices,
                    SizeOf size_of) const;

  // Pins each block of `slices`, once for each call.
  void Pin(const std::vector<BlockSlice>& slices, SizeOf size_of);

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
