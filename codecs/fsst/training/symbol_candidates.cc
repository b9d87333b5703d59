// SPDX-License-Identifier: Apache-2.0
#include "codecs/fsst/training/symbol_candidates.h"

#include <algorithm>

namespace quire {
namespace {

bool IsBetter(const SymbolCandidate& a, const SymbolCandidate& b) {
  if (a.gain != b.gain) {
    return a.gain > b.gain;
  }
  if (a.symbol.size != b.symbol.size) {
    return a.symbol.size < b.symbol.size;
  }
  return a.symbol.bytes < b.symbol.bytes;
}

}  // namespace

SymbolCandidates::SymbolCandidates(int capacity_log2)
    : shift_(64 - capacity_log2), places_(size_t{1} << capacity_log2) {}

void SymbolCandidates::Clear() {
  for (const uint32_t place : taken_) {
    places_[place] = Place();
  }
  taken_.clear();
}

size_t SymbolCandidates::Find(const FsstSymbol& symbol) const {
  const uint64_t key = symbol.bytes ^ uint64_t { symbol.size } << 59;
  size_t place = key * 0x9e3779b97f4a7c15u >> shift_;
  while (places_[place].size != 0 && (places_[place].bytes != symbol.bytes ||
                                      places_[place].size != symbol.size)) {
    place = (place + 1) % places_.size();
  }
  return place;
}

void SymbolCandidates::Add(const FsstSymbol& symbol, uint32_t gain) {
  const size_t index = Find(symbol);
  Place& place = places_[index];
  if (place.size == 0) {
    if (taken_.size() >= places_.size() / 4 * 3) {
      return;
    }
    taken_.push_back(static_cast<uint32_t>(index));
    place = {.bytes = symbol.bytes, .gain = gain, .size = symbol.size};
  } else {
    place.gain += gain;
  }
}

void SymbolCandidates::Exclude(const FsstSymbol& symbol) {
  places_[Find(symbol)].gain = 0;
}

std::vector<SymbolCandidate> SymbolCandidates::Best(size_t count_max) const {
  std::vector<SymbolCandidate> best;
  best.reserve(taken_.size());
  for (const uint32_t index : taken_) {
    const Place& place = places_[index];
    if (place.gain > 0) {
      best.push_back({{place.bytes, place.size}, place.gain});
    }
  }
  const auto end =
      best.begin() + static_cast<ptrdiff_t>(std::min(count_max, best.size()));
  std::nth_element(best.begin(), end, best.end(), IsBetter);
  std::sort(best.begin(), end, IsBetter);
  best.erase(end, best.end());
  return best;
}

}  // namespace quire
