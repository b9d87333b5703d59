// SPDX-License-Identifier: Apache-2.0
//
// Finds the symbols that text begins with: the longest, or all. For training,
// which changes the symbols every round, and for the shortest parse.
#ifndef QUIRE_CODECS_FSST_TABLE_SYMBOL_MATCHER_H_
#define QUIRE_CODECS_FSST_TABLE_SYMBOL_MATCHER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "codecs/fsst/table/symbol_table.h"

namespace quire {

// The first `size` bytes of `word`, then zeros. REQUIRES: 1 <= size <= 8.
inline uint64_t FirstBytes(uint64_t word, size_t size) {
  return word << (64 - 8 * size) >> (64 - 8 * size);
}

// Finds symbols of three bytes or more by their first three, shorter ones by
// direct look-up. It uses chains instead of the single slots of the paper's
// section 5.3, so that it holds any set of symbols. Symbols are numbered in the
// order given. Positions are words: the next eight bytes of text, first lowest,
// of which `left` are text and the rest arbitrary. Immutable except for
// SetSymbols: thread-compatible. 150 KB.
class SymbolMatcher {
 public:
  static constexpr uint16_t kNone = 0xffff;

  struct Match {
    uint16_t index;  // kNone: no symbol, size 1
    uint16_t size;
  };

  SymbolMatcher();
  explicit SymbolMatcher(std::span<const FsstSymbol> symbols);

  // Replaces all symbols. REQUIRES: at most kSymbolCountMax, all different, of
  // 1 to 8 bytes followed by zeros.
  void SetSymbols(std::span<const FsstSymbol> symbols);

  // Returns the longest symbol at `word`. REQUIRES: left > 0.
  Match Longest(uint64_t word, size_t left) const {
    for (const LongSymbol* symbol = &longs_[heads_[Bucket(word)]];
         symbol->size != 0; ++symbol) {
      if (symbol->size <= left &&
          FirstBytes(word, symbol->size) == symbol->bytes) {
        return {symbol->index, symbol->size};
      }
    }
    const uint16_t pair = pairs_[word & 0xffff];
    if (pair != kNone && left >= 2) {
      return {pair, 2};
    }
    return {singles_[word & 0xff], 1};
  }

  // Calls visit(index, size) for each symbol at `word`: those of three bytes or
  // more longest first, then that of two, then that of one.
  // REQUIRES: left > 0.
  template <typename Visit>
  void ForEach(uint64_t word, size_t left, Visit visit) const {
    for (const LongSymbol* symbol = &longs_[heads_[Bucket(word)]];
         symbol->size != 0; ++symbol) {
      if (symbol->size <= left &&
          FirstBytes(word, symbol->size) == symbol->bytes) {
        visit(symbol->index, size_t{symbol->size});
      }
    }
    const uint16_t pair = pairs_[word & 0xffff];
    if (pair != kNone && left >= 2) {
      visit(pair, size_t{2});
    }
    const uint16_t single = singles_[word & 0xff];
    if (single != kNone) {
      visit(single, size_t{1});
    }
  }

 private:
  static constexpr size_t kBucketCount = 2048;

  // Symbols of one bucket follow each other, longest first, up to one of size
  // 0.
  struct LongSymbol {
    uint64_t bytes = 0;
    uint16_t index = 0;
    uint16_t size = 0;
  };

  static size_t Bucket(uint64_t word) {
    return static_cast<uint32_t>((word & 0xffffff) * 0x9e3779b1u) >> 21;
  }

  void SetLongSymbols(std::span<const FsstSymbol> symbols);

  std::array<uint16_t, 256> singles_;
  std::vector<uint16_t> pairs_;               // by the two bytes
  std::vector<uint16_t> pairs_set_;           // entries that are not kNone
  std::array<uint16_t, kBucketCount> heads_;  // index in longs_
  std::vector<LongSymbol> longs_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_FSST_TABLE_SYMBOL_MATCHER_H_
