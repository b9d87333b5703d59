// SPDX-License-Identifier: Apache-2.0
#include "codecs/fsst/training_matcher.h"

#include <algorithm>
#include <tuple>

namespace quire {

TrainingMatcher::TrainingMatcher() : pairs_(size_t{1} << 16, kNone) {
  SetSymbols({});
}

void TrainingMatcher::SetSymbols(std::span<const FsstSymbol> symbols) {
  for (const uint16_t pair : pairs_set_) {
    pairs_[pair] = kNone;
  }
  pairs_set_.clear();
  for (size_t byte = 0; byte < singles_.size(); ++byte) {
    singles_[byte] = static_cast<uint16_t>(kEscapes + byte);
  }
  for (size_t code = 0; code < symbols.size(); ++code) {
    const FsstSymbol& symbol = symbols[code];
    if (symbol.size == 1) {
      singles_[symbol.bytes] = static_cast<uint16_t>(code);
    } else if (symbol.size == 2) {
      const auto pair = static_cast<uint16_t>(symbol.bytes);
      pairs_[pair] = static_cast<uint16_t>(code);
      pairs_set_.push_back(pair);
    }
  }
  SetLongSymbols(symbols);
}

void TrainingMatcher::SetLongSymbols(std::span<const FsstSymbol> symbols) {
  std::vector<uint16_t> codes;
  for (size_t code = 0; code < symbols.size(); ++code) {
    if (symbols[code].size > 2) {
      codes.push_back(static_cast<uint16_t>(code));
    }
  }
  std::ranges::sort(codes, {}, [&](uint16_t code) {
    const FsstSymbol& symbol = symbols[code];
    return std::tuple(Bucket(symbol.bytes), -int{symbol.size}, code);
  });
  longs_.assign(1, LongSymbol());  // what empty buckets begin with
  heads_.fill(0);
  for (size_t i = 0; i < codes.size(); ++i) {
    const FsstSymbol& symbol = symbols[codes[i]];
    const size_t bucket = Bucket(symbol.bytes);
    if (heads_[bucket] == 0) {
      longs_.push_back(LongSymbol());
      heads_[bucket] = static_cast<uint16_t>(longs_.size());
    }
    longs_.push_back({symbol.bytes, codes[i], symbol.size});
  }
  longs_.push_back(LongSymbol());
}

}  // namespace quire
