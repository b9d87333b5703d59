// SPDX-License-Identifier: Apache-2.0
//
// What a cheap look at a block says about the codecs that may suit it.
//
// Everything is computed in integers, so that the answers are the same on every
// machine.
#ifndef QUIRE_CODECS_AUTO_BLOCK_PROBE_H_
#define QUIRE_CODECS_AUTO_BLOCK_PROBE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "codecs/base/bytes.h"

namespace quire {

// Entropies of order 0, in thousandths of a bit per byte: 8000 for bytes that
// are uniformly distributed. Those of few bytes are biased to the low side.
struct ByteEntropy {
  // Of all bytes alike.
  uint32_t plain = 0;
  // The smallest of those where each byte of a number of 2, 4 or 8 bytes has a
  // distribution of its own, of the numbers or of the differences between the
  // bytes of one number and those of the number before it.
  uint32_t as_numbers = 0;
};

// Of samples of `block`, 16 KiB in all. REQUIRES: !block.empty().
ByteEntropy MeasureEntropy(ByteView block);

// Whether rearranging the block's bytes as those of numbers lowers its entropy.
bool LooksNumeric(const ByteEntropy& entropy);

// Says whether a text has parts in common with a dictionary: a Bloom filter of
// the dictionary's pieces that begin at multiples of their size, with all bits
// of a piece in one word. Every common part of 2 * kPieceSize - 1 bytes or more
// is found; of other positions, about one in 4000 is found by mistake.
// Immutable, hence thread-safe.
class DictionaryFilter {
 public:
  static constexpr size_t kPieceSize = 16;

  // Keeps no reference to `dictionary`. Takes a quarter to a half of its size.
  explicit DictionaryFilter(ByteView dictionary);

  // How many of the samples' pieces, at any position, are likely to be in the
  // dictionary, in thousandths.
  uint32_t SharePerMille(ByteView block) const;

  size_t MemoryBytes() const { return words_.size() * sizeof(uint64_t); }

 private:
  bool Contains(const uint8_t* piece) const;

  // A power of two of them.
  std::vector<uint64_t> words_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_AUTO_BLOCK_PROBE_H_
