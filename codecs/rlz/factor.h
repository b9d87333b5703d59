// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_RLZ_FACTOR_H_
#define QUIRE_CODECS_RLZ_FACTOR_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "codecs/base/bytes.h"

namespace quire {

class SuffixIndex;

// A block as pieces of the dictionary ("Access Time Tradeoffs in Archive
// Compression", section 2). Factor i stands for the lengths[i] bytes of the
// dictionary from offsets[i] on; or, if lengths[i] is 0, for the single byte
// offsets[i], a literal, which is then at most 255.
//
// Two arrays rather than one of pairs, because they are coded apart, and
// a search for a place in the text needs the lengths only.
struct FactorList {
  std::vector<uint32_t> offsets;
  std::vector<uint32_t> lengths;

  size_t size() const { return lengths.size(); }

  // Keeps the memory.
  void Clear() {
    offsets.clear();
    lengths.clear();
  }

  void Add(uint32_t offset, uint32_t length) {
    offsets.push_back(offset);
    lengths.push_back(length);
  }
};

// How many bytes of text a factor of this length stands for.
inline size_t TextSizeOf(uint32_t length) {
  return length == 0 ? 1 : length;
}

// Cuts `block` into factors from left to right, each the longest there is in
// the dictionary that `index` was built of; a byte that does not occur in it
// becomes a literal. Among equally long matches it takes the index's choice.
// The text of the factors is the block; there is at least one for a block that
// is not empty, and at most block.size().
//
// `factors` is overwritten; its memory is reused.
// Thread-safe.
void FactoriseGreedily(const SuffixIndex& index, ByteView block,
                       FactorList& factors);

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_FACTOR_H_
