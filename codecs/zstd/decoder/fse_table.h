// SPDX-License-Identifier: Apache-2.0
//
// Finite state entropy (RFC 8878, section 4.1): the counts of symbols, and the
// symbol of each decoder state.
#ifndef QUIRE_CODECS_ZSTD_DECODER_FSE_TABLE_H_
#define QUIRE_CODECS_ZSTD_DECODER_FSE_TABLE_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "codecs/base/bytes.h"

namespace quire {

// Largest table and alphabet in zstd.
inline constexpr unsigned kFseLogMax = 9;
inline constexpr unsigned kFseSymbolMax = 52;

struct FseCounts {
  // States per symbol; -1 for a rarer symbol, which has one state. Their
  // magnitudes add up to 1 << log.
  std::array<int16_t, kFseSymbolMax + 1> counts = {};
  unsigned symbol_count = 0;
  unsigned log = 0;
};

// Reads a table description (RFC 8878, section 4.1.1) from the front of
// `stored`; returns its size in bytes, or 0 if it is malformed.
// REQUIRES: log_max <= kFseLogMax, symbol_max <= kFseSymbolMax.
size_t ReadFseCounts(ByteView stored, unsigned log_max, unsigned symbol_max,
                     FseCounts& counts);

// The next state is next_base + the next bit_count bits.
struct FseStep {
  unsigned symbol = 0;
  unsigned bit_count = 0;
  unsigned next_base = 0;
};

// The symbol of each state; the first 1 << log are set.
using FseSymbols = std::array<uint8_t, size_t{1} << kFseLogMax>;

// REQUIRES: `counts` is from ReadFseCounts().
void SpreadFseSymbols(const FseCounts& counts, FseSymbols& symbols);

// Calls set(state, FseStep) for each state, in order.
// REQUIRES: as SpreadFseSymbols().
template <typename Set>
void BuildFseTable(const FseCounts& counts, Set set) {
  FseSymbols symbols;
  SpreadFseSymbols(counts, symbols);
  // The states of a symbol are numbered from its count on.
  std::array<uint16_t, kFseSymbolMax + 1> next;
  for (unsigned symbol = 0; symbol < counts.symbol_count; ++symbol) {
    next[symbol] = static_cast<uint16_t>(std::abs(counts.counts[symbol]));
  }
  const unsigned size = 1u << counts.log;
  for (unsigned state = 0; state < size; ++state) {
    const unsigned symbol = symbols[state];
    const unsigned number = next[symbol]++;
    const unsigned bit_count =
        counts.log -
        (31 ^ static_cast<unsigned>(std::countl_zero(uint32_t{number} | 1)));
    set(state, FseStep{.symbol = symbol,
                       .bit_count = bit_count,
                       .next_base = (number << bit_count) - size});
  }
}

}  // namespace quire

#endif  // QUIRE_CODECS_ZSTD_DECODER_FSE_TABLE_H_
