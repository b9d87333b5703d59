// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_RLZ_PARSE_HASH_CHAINS_H_
#define QUIRE_CODECS_RLZ_PARSE_HASH_CHAINS_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "codecs/base/bytes.h"
#include "codecs/base/endian.h"

namespace quire {

// Earlier positions of a block with the same next four bytes, nearest first: a
// list for each hash of four bytes, in two arrays of integers. Positions are
// offsets in the block, in bytes, held as `Place`: smaller ones leave more of
// the caches to the text. Memory: at most 2^16 places, and one per byte of the
// largest block; it is reused from block to block.
// Thread-compatible.
template <typename Place>
class HashChains {
 public:
  static constexpr uint32_t kKeySize = 4;
  // No position.
  static constexpr Place kNone = std::numeric_limits<Place>::max();
  // Size of the largest block, in bytes: none of its positions is kNone.
  static constexpr uint64_t kBlockSizeMax =
      std::min(uint64_t{kNone} + 1, uint64_t{0xFFFFFFFF});

  // Starts a block, which must outlive its use, without positions.
  // REQUIRES: block.size() <= kBlockSizeMax.
  void Start(ByteView block) {
    block_ = block;
    entered_ = 0;
    end_ = block.size() < kKeySize
               ? 0
               : static_cast<uint32_t>(block.size() - kKeySize + 1);
    const auto bits =
        std::clamp(static_cast<uint32_t>(std::bit_width(block.size())), 9u,
                   17u) -
        1;
    shift_ = 32 - bits;
    first_.assign(size_t{1} << bits, kNone);
    if (next_.size() < end_) {
      next_.resize(end_);
    }
  }

  // Enters all positions before `position` that are not yet entered. Takes time
  // linear in their number.
  void EnterUpTo(uint32_t position) {
    const uint32_t end = std::min(position, end_);
    for (; entered_ < end; ++entered_) {
      Place& first = first_[Hash(entered_)];
      next_[entered_] = first;
      first = static_cast<Place>(entered_);
    }
  }

  // Returns the nearest entered position whose next four bytes have the same
  // hash as those at `position`; kNone if there is none.
  uint32_t First(uint32_t position) const {
    return position < end_ ? first_[Hash(position)] : kNone;
  }

  // Returns the nearest one before `entered`, likewise; kNone if there is none.
  // REQUIRES: `entered` came from First() or Next() since Start().
  uint32_t Next(uint32_t entered) const { return next_[entered]; }

 private:
  uint32_t Hash(uint32_t position) const {
    return LoadLittleEndian<uint32_t>(block_.data() + position) * 0x9E3779B1u >>
           shift_;
  }

  ByteView block_;
  uint32_t entered_ = 0;
  // Positions from here on have fewer than four bytes after them.
  uint32_t end_ = 0;
  uint32_t shift_ = 0;
  std::vector<Place> first_;
  std::vector<Place> next_;
};

// Those of blocks of up to 64 KiB, and of larger ones. Either finds the same.
struct BlockHashChains {
  HashChains<uint16_t> of_small;
  HashChains<uint32_t> of_large;

  // Calls `use` with those for a block of that size.
  template <typename Use>
  void For(size_t block_size, const Use& use) {
    if (block_size <= HashChains<uint16_t>::kBlockSizeMax) {
      use(of_small);
    } else {
      use(of_large);
    }
  }
};

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_PARSE_HASH_CHAINS_H_
