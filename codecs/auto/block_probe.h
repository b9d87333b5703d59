// SPDX-License-Identifier: Apache-2.0
//
// Cheap measurements of a block that show which codecs may suit it.
//
// All arithmetic is on integers, so that the results are the same on every
// machine.
#ifndef QUIRE_CODECS_AUTO_BLOCK_PROBE_H_
#define QUIRE_CODECS_AUTO_BLOCK_PROBE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "codecs/base/bytes.h"

namespace quire {

// Entropies of order 0, in thousandths of a bit per byte: 8000 for uniformly
// distributed bytes. Biased low for few bytes.
struct ByteEntropy {
  // With one distribution for all bytes.
  uint32_t plain = 0;
  // With a separate distribution for each byte of a number of 2, 4 or 8 bytes,
  // of the numbers or of the differences to the bytes of the number before: the
  // smallest of these.
  uint32_t as_numbers = 0;
};

// Measures samples of `block`, 16 KiB in all. REQUIRES: !block.empty().
ByteEntropy MeasureEntropy(ByteView block);

// True if rearranging the block's bytes as those of numbers lowers its entropy.
bool LooksNumeric(const ByteEntropy& entropy);

// Estimates how much a text has in common with a dictionary. A Bloom filter of
// the dictionary's pieces that begin at multiples of their size, with all bits
// of a piece in one word. Finds every common part of 2 * kPieceSize - 1 bytes
// or more; about one in 4000 other positions is a false positive. Immutable,
// hence thread-safe.
class DictionaryFilter {
 public:
  static constexpr size_t kPieceSize = 16;

  // Keeps no reference to `dictionary`. Takes a quarter to a half of its size.
  explicit DictionaryFilter(ByteView dictionary);

  // Returns the share of the samples' pieces, at any position, that are
  // probably in the dictionary, in thousandths.
  uint32_t SharePerMille(ByteView block) const;

  size_t MemoryBytes() const { return words_.size() * sizeof(uint64_t); }

 private:
  bool Contains(const uint8_t* piece) const;

  // Their number is a power of two.
  std::vector<uint64_t> words_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_AUTO_BLOCK_PROBE_H_
