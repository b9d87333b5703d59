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
// dictionary from offsets[i] on. If lengths[i] is 0, it stands for the single
// byte offsets[i], at most 255: a literal.
//
// Two arrays instead of one of pairs: they are coded separately, and a search
// for a position in the text needs the lengths only.
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

// Returns the number of bytes of text that a factor of this length stands for.
inline size_t TextSizeOf(uint32_t length) {
  return length == 0 ? 1 : length;
}

// Divides `block` into factors from left to right, each the longest match in
// the dictionary of `index`. A byte that does not occur in the dictionary
// becomes a literal. The index chooses among equally long matches. A block that
// is not empty has between one and block.size() factors.
//
// Overwrites `factors` and reuses its memory.
// Thread-safe.
void FactoriseGreedily(const SuffixIndex& index, ByteView block,
                       FactorList& factors);

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_FACTOR_H_
