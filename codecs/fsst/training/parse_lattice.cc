// SPDX-License-Identifier: Apache-2.0
#include "codecs/fsst/training/parse_lattice.h"

#include <bit>

namespace quire {

void ParseLattice::Parse(ByteView piece, const SymbolMatcher& matcher) {
  piece_ = piece;
  behind_[piece.size()] = 0;
  for (size_t i = piece.size(); i-- > 0;) {
    uint32_t cost = behind_[i + 1] + 2u;
    uint32_t sizes = 0;
    Step step = {SymbolMatcher::kNone, 1};
    matcher.ForEach(
        LoadLittleEndian<uint64_t>(piece.data() + i), piece.size() - i,
        [&](uint16_t index, size_t size) {
          sizes |= 1u << (size - 1);
          const uint32_t with = behind_[i + size] + 1u;
          if (with < cost + (step.index == SymbolMatcher::kNone ? 1 : 0)) {
            cost = with;
            step = {index, static_cast<uint16_t>(size)};
          }
        });
    behind_[i] = static_cast<uint16_t>(cost);
    sizes_[i] = static_cast<uint8_t>(sizes);
    steps_[i] = step;
  }
  std::fill_n(before_.begin(), piece.size() + 1, uint16_t{0xffff});
  before_[0] = 0;
  for (size_t i = 0; i < piece.size(); ++i) {
    const auto escaped = static_cast<uint16_t>(before_[i] + 2);
    before_[i + 1] = std::min(before_[i + 1], escaped);
    const auto with = static_cast<uint16_t>(before_[i] + 1);
    for (uint32_t sizes = sizes_[i]; sizes != 0; sizes &= sizes - 1) {
      uint16_t& next =
          before_[i + static_cast<size_t>(std::countr_zero(sizes)) + 1];
      next = std::min(next, with);
    }
  }
}

// Every parse has one step that covers the byte at `at`. Returns the best parse
// whose step there is not the symbol.
uint32_t ParseLattice::SizeAround(size_t at, size_t symbol_size) const {
  uint32_t smallest = before_[at] + 2u + behind_[at + 1];
  for (size_t back = 0; back < kFsstSymbolSizeMax && back <= at; ++back) {
    const size_t begin = at - back;
    uint32_t sizes = uint32_t{sizes_[begin]} >> back << back;
    if (back == 0) {
      sizes &= ~(1u << (symbol_size - 1));
    }
    for (; sizes != 0; sizes &= sizes - 1) {
      const auto size = static_cast<size_t>(std::countr_zero(sizes)) + 1;
      smallest =
          std::min(smallest, before_[begin] + 1u + behind_[begin + size]);
    }
  }
  return smallest;
}

}  // namespace quire
