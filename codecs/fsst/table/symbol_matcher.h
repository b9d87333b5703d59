// SPDX-License-Identifier: Apache-2.0
//
// Which symbols a place begins with: the longest, or all of them. For training,
// whose symbols change every round, and for the shortest parse.
#ifndef QUIRE_CODECS_FSST_TABLE_SYMBOL_MATCHER_H_
#define QUIRE_CODECS_FSST_TABLE_SYMBOL_MATCHER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "codecs/fsst/table/symbol_table.h"

namespace quire {

// The first `size` bytes of `word`, zeros behind. REQUIRES: 1 <= size <= 8.
inline uint64_t FirstBytes(uint64_t word, size_t size) {
  return word << (64 - 8 * size) >> (64 - 8 * size);
}

// Finds symbols of three bytes and more by their first three, through chains
// instead of the single slots of the paper's section 5.3, so that it holds any
// set of symbols; the shorter ones by direct look-up. Symbols are numbered in
// the order in which they were given.
// Positions are words: the next eight bytes of text, the first lowest, of which
// `left` are text; the others may be anything.
// Immutable but for SetSymbols: thread-compatible. 150 KB.
class SymbolMatcher {
 public:
  static constexpr uint16_t kNone = 0xffff;
  static constexpr size_t kSymbolCountMax = 4096;

  struct Match {
    uint16_t index;  // kNone: no symbol, and size 1
    uint16_t size;
  };

  SymbolMatcher();
  explicit SymbolMatcher(std::span<const FsstSymbol> symbols);

  // Replaces all symbols. REQUIRES: at most kSymbolCountMax of them, all
  // different, of 1 to 8 bytes with zeros behind.
  void SetSymbols(std::span<const FsstSymbol> symbols);

  // The longest symbol at `word`. REQUIRES: left > 0.
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

  // Calls visit(index, size) for each symbol at `word`: first those of three
  // bytes and more, longest first, then that of two, then that of one.
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

  // Those of a bucket follow one another, longest first, up to one of size 0.
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
  std::vector<uint16_t> pairs_set_;           // what is not kNone there
  std::array<uint16_t, kBucketCount> heads_;  // index in longs_
  std::vector<LongSymbol> longs_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_FSST_TABLE_SYMBOL_MATCHER_H_
