// SPDX-License-Identifier: Apache-2.0
#include "codecs/fsst/encode/fsst_optimal_parse.h"

#include <algorithm>
#include <array>
#include <vector>

#include "codecs/base/check.h"
#include "codecs/base/endian.h"

namespace quire {

FsstOptimalParse::FsstOptimalParse(const SymbolTable& table) {
  std::vector<FsstSymbol> symbols;
  for (size_t code = 0; code < table.symbol_count(); ++code) {
    symbols.push_back(table.symbol(code));
  }
  matcher_.SetSymbols(symbols);
}

size_t FsstOptimalParse::Encode(ByteView piece, uint8_t* codes) const {
  QUIRE_DCHECK(piece.size() <= kFsstStringSizeMax);
  // A copy, so that eight bytes are readable at each offset.
  std::array<uint8_t, kFsstStringSizeMax + kFsstSymbolSizeMax> bytes;
  std::ranges::copy(piece, bytes.begin());
  std::fill_n(bytes.begin() + static_cast<ptrdiff_t>(piece.size()),
              kFsstSymbolSizeMax, uint8_t{0});

  struct Step {
    uint8_t code;
    uint8_t size;
  };

  // Fewest bytes of codes for the text from each offset on, and the first step.
  std::array<uint32_t, kFsstStringSizeMax + 1> costs;
  std::array<Step, kFsstStringSizeMax> steps;
  costs[piece.size()] = 0;
  for (size_t i = piece.size(); i-- > 0;) {
    uint32_t cost = costs[i + 1] + 2;
    Step step = {.code = kFsstEscape, .size = 1};
    matcher_.ForEach(
        LoadLittleEndian<uint64_t>(&bytes[i]), piece.size() - i,
        [&](uint16_t index, size_t size) {
          // An escape is as long as a symbol whose rest costs one byte more.
          if (costs[i + size] + 1 < cost + (step.code == kFsstEscape ? 1 : 0)) {
            cost = costs[i + size] + 1;
            step = {static_cast<uint8_t>(index), static_cast<uint8_t>(size)};
          }
        });
    costs[i] = cost;
    steps[i] = step;
  }

  size_t size = 0;
  for (size_t i = 0; i < piece.size(); i += steps[i].size) {
    codes[size++] = steps[i].code;
    if (steps[i].code == kFsstEscape) {
      codes[size++] = bytes[i];
    }
  }
  return size;
}

}  // namespace quire
