// SPDX-License-Identifier: Apache-2.0
//
// The longest symbol at a place, for tables that change every round.
#ifndef QUIRE_CODECS_FSST_TRAINING_MATCHER_H_
#define QUIRE_CODECS_FSST_TRAINING_MATCHER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "codecs/fsst/symbol_table.h"

namespace quire {

// A symbol's bytes among the eight of `word`.
inline uint64_t FirstBytes(uint64_t word, size_t size) {
  return size >= 8 ? word : word & ((uint64_t{1} << (8 * size)) - 1);
}

// Finds symbols by their first three bytes, through chains instead of the
// single slots of the paper's section 5.3: training must judge tables as an
// encoder without that limit uses them.
// Thread-compatible.
class TrainingMatcher {
 public:
  // Codes below kEscapes are indexes of symbols; kEscapes + b is the escaped
  // byte b.
  static constexpr size_t kEscapes = 256;
  static constexpr size_t kCodeCount = 512;

  struct Match {
    uint32_t code;
    uint32_t size;
  };

  TrainingMatcher();

  // Replaces all symbols. REQUIRES: at most kEscapes of them, all different.
  void SetSymbols(std::span<const FsstSymbol> symbols);

  // The longest symbol of at most `left` bytes that `word` begins with, or an
  // escape. REQUIRES: left > 0.
  Match Longest(uint64_t word, size_t left) const {
    for (const LongSymbol* symbol = &longs_[heads_[Bucket(word)]];
         symbol->size != 0; ++symbol) {
      if (symbol->size <= left &&
          FirstBytes(word, symbol->size) == symbol->bytes) {
        return {symbol->code, symbol->size};
      }
    }
    const uint16_t pair = left >= 2 ? pairs_[word & 0xffff] : kNone;
    if (pair != kNone) {
      return {pair, 2};
    }
    return {singles_[word & 0xff], 1};
  }

 private:
  static constexpr uint16_t kNone = 0xffff;
  static constexpr size_t kBucketCount = 2048;

  // Symbols of three bytes and more; those of a bucket follow one another,
  // longest first, up to one of size 0.
  struct LongSymbol {
    uint64_t bytes = 0;
    uint16_t code = 0;
    uint16_t size = 0;
  };

  static size_t Bucket(uint64_t word) {
    return ((word & 0xffffff) * 0x9e3779b1u >> 16) % kBucketCount;
  }

  void SetLongSymbols(std::span<const FsstSymbol> symbols);

  std::vector<uint16_t> pairs_;  // by the first two bytes
  std::vector<uint16_t> pairs_set_;
  std::array<uint16_t, 256> singles_;
  std::array<uint16_t, kBucketCount> heads_;  // index in longs_
  std::vector<LongSymbol> longs_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_FSST_TRAINING_MATCHER_H_
