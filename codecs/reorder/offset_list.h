// SPDX-License-Identifier: Apache-2.0
//
// A compact list of the offsets of a text's parts.
#ifndef QUIRE_CODECS_REORDER_OFFSET_LIST_H_
#define QUIRE_CODECS_REORDER_OFFSET_LIST_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace quire {

// Ascending offsets. Memory: 4 bytes each, and 8 per 4 GiB of range.
// Thread-compatible.
class OffsetList {
 public:
  // REQUIRES: offset is not less than the last one; size() < 2^32.
  void Append(uint64_t offset) {
    for (uint64_t high = offset >> 32; highs_.size() <= high;) {
      highs_.push_back(lows_.size());
    }
    lows_.push_back(static_cast<uint32_t>(offset));
  }

  size_t size() const { return lows_.size(); }

  // REQUIRES: i < size().
  uint64_t operator[](size_t i) const {
    // The last high half that begins at i or before; if several begin there,
    // all except the last have no offsets.
    const auto after = std::ranges::upper_bound(highs_, i);
    const auto high = static_cast<uint64_t>(after - highs_.begin()) - 1;
    return high << 32 | lows_[i];
  }

  size_t CountBelow(uint64_t offset) const {
    const uint64_t high = offset >> 32;
    if (high >= highs_.size()) {
      return size();
    }
    const size_t begin = highs_[high];
    const size_t end = high + 1 < highs_.size() ? highs_[high + 1] : size();
    return static_cast<size_t>(
        std::lower_bound(lows_.begin() + static_cast<ptrdiff_t>(begin),
                         lows_.begin() + static_cast<ptrdiff_t>(end),
                         static_cast<uint32_t>(offset)) -
        lows_.begin());
  }

  size_t MemoryBytes() const {
    return lows_.size() * sizeof(uint32_t) + highs_.size() * sizeof(size_t);
  }

 private:
  // A deque: a vector would double to grow.
  std::deque<uint32_t> lows_;
  // For each high half, from 0: the first offset with it or a larger one.
  std::vector<size_t> highs_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_REORDER_OFFSET_LIST_H_
