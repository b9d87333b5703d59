// SPDX-License-Identifier: Apache-2.0
//
// Finite state entropy (RFC 8878, section 4.1): how often each symbol occurs,
// and which state of a decoder stands for which symbol.
#ifndef QUIRE_CODECS_ZSTD_FSE_TABLE_H_
#define QUIRE_CODECS_ZSTD_FSE_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "codecs/base/bytes.h"

namespace quire {

// The largest table and alphabet of any that zstd uses.
inline constexpr unsigned kFseLogMax = 9;
inline constexpr unsigned kFseSymbolMax = 52;

struct FseCounts {
  // States per symbol; -1 for one state of a symbol rarer than that. Their
  // magnitudes add up to 1 << log.
  std::array<int16_t, kFseSymbolMax + 1> counts = {};
  unsigned symbol_count = 0;
  unsigned log = 0;
};

// Reads a table description (RFC 8878, section 4.1.1) from the front of
// `stored`; returns how many bytes it takes, or 0 if it is wrong.
// REQUIRES: log_max <= kFseLogMax, symbol_max <= kFseSymbolMax.
size_t ReadFseCounts(ByteView stored, unsigned log_max, unsigned symbol_max,
                     FseCounts& counts);

// Where a state goes: to next_base + the next bit_count bits.
struct FseStep {
  uint8_t symbol = 0;
  uint8_t bit_count = 0;
  uint16_t next_base = 0;
};

// One step per state; the first 1 << counts.log are set.
using FseSteps = std::array<FseStep, size_t{1} << kFseLogMax>;

// REQUIRES: `counts` is as ReadFseCounts() gives it.
void BuildFseSteps(const FseCounts& counts, FseSteps& steps);

}  // namespace quire

#endif  // QUIRE_CODECS_ZSTD_FSE_TABLE_H_
