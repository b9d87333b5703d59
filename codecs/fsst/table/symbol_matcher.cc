// SPDX-License-Identifier: Apache-2.0
#include "codecs/fsst/table/symbol_matcher.h"

#include <algorithm>

namespace quire {

SymbolMatcher::SymbolMatcher() : SymbolMatcher(std::span<FsstSymbol>()) {}

SymbolMatcher::SymbolMatcher(std::span<const FsstSymbol> symbols)
    : pairs_(size_t{1} << 16, kNone) {
  SetSymbols(symbols);
}

void SymbolMatcher::SetSymbols(std::span<const FsstSymbol> symbols) {
  for (const uint16_t pair : pairs_set_) {
    pairs_[pair] = kNone;
  }
  pairs_set_.clear();
  singles_.fill(kNone);
  for (size_t i = 0; i < symbols.size(); ++i) {
    const FsstSymbol& symbol = symbols[i];
    if (symbol.size == 1) {
      singles_[symbol.bytes] = static_cast<uint16_t>(i);
    } else if (symbol.size == 2) {
      pairs_[symbol.bytes] = static_cast<uint16_t>(i);
      pairs_set_.push_back(static_cast<uint16_t>(symbol.bytes));
    }
  }
  SetLongSymbols(symbols);
}

void SymbolMatcher::SetLongSymbols(std::span<const FsstSymbol> symbols) {
  // Bucket, then descending size, then index, in one number each.
  std::vector<uint64_t> keys;
  keys.reserve(symbols.size());
  for (size_t i = 0; i < symbols.size(); ++i) {
    if (symbols[i].size > 2) {
      const uint64_t rank = kFsstSymbolSizeMax - symbols[i].size;
      keys.push_back(uint64_t{Bucket(symbols[i].bytes)} << 32 | rank << 16 | i);
    }
  }
  std::sort(keys.begin(), keys.end());
  longs_.assign(1, LongSymbol());  // the end of empty buckets
  heads_.fill(0);
  for (const uint64_t key : keys) {
    const size_t bucket = key >> 32;
    if (heads_[bucket] == 0) {
      if (longs_.size() > 1) {
        longs_.emplace_back();
      }
      heads_[bucket] = static_cast<uint16_t>(longs_.size());
    }
    const auto index = static_cast<uint16_t>(key & 0xffff);
    longs_.push_back({symbols[index].bytes, index, symbols[index].size});
  }
  longs_.emplace_back();
}

}  // namespace quire
