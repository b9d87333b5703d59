// SPDX-License-Identifier: GPL-3.0-or-later
//
// Types of blocks that all of storage shares: name, text, and the class of
// waiting callers.
#ifndef QUIRE_SERVER_STORAGE_BASE_BLOCK_TYPES_H_
#define QUIRE_SERVER_STORAGE_BASE_BLOCK_TYPES_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "codecs/base/bytes.h"
#include "codecs/base/positions.h"

namespace quire {

// Names a block, or a part of one, permanently within this process: segments
// opened again get a new source_id.
struct BlockKey {
  uint64_t source_id = 0;
  BlockAddress block;
  // Index of the part, below kBlockPartsMax.
  uint32_t part = 0;

  auto operator<=>(const BlockKey&) const = default;

  template <typename H>
  friend H AbslHashValue(H h, const BlockKey& key) {
    return H::combine(std::move(h), key.source_id, key.block.segment_index,
                      key.block.block_index, key.part);
  }
};

inline constexpr uint32_t kBlockPartsMax = 256;

// Text of a block, or of a part of one. Immutable; any holder of the pointer
// may read it.
class DecodedBlock {
 public:
  virtual ~DecodedBlock() = default;
  virtual ByteView bytes() const = 0;
};

using BlockPtr = std::shared_ptr<const DecodedBlock>;

// Class of a waiting caller: decides the order when devices are busy.
enum class FetchClass {
  kInteractive,
  kBatch,
  kScan,
  // Checks of stored blocks for the server itself. They bypass the cache.
  kScrub,
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_BASE_BLOCK_TYPES_H_
