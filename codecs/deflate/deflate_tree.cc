// SPDX-License-Identifier: Apache-2.0
#include "codecs/deflate/deflate_tree.h"

#include <algorithm>
#include <array>

#include "codecs/base/check.h"

namespace quire {
namespace {

constexpr size_t kLengthMax = 15;
constexpr size_t kNodesMax = 2 * kDeflateTreeSymbolsMax;

// A node of the heap: its frequency (16 bits), height (6 bits; 65,535 symbols
// reach at most 23) and number (10 bits). Only the first two count in
// comparisons.
using Entry = uint32_t;

constexpr unsigned kNumberBits = 10;
constexpr unsigned kHeightBits = 6;
static_assert(kNodesMax <= size_t{1} << kNumberBits);

constexpr uint32_t NumberOf(Entry entry) {
  return entry & ((1 << kNumberBits) - 1);
}

constexpr uint32_t HeightOf(Entry entry) {
  return entry >> kNumberBits & ((1 << kHeightBits) - 1);
}

constexpr uint32_t FrequencyOf(Entry entry) {
  return entry >> (kNumberBits + kHeightBits);
}

constexpr Entry MakeEntry(uint32_t frequency, uint32_t height,
                          uint32_t number) {
  return frequency << (kNumberBits + kHeightBits) | height << kNumberBits |
         number;
}

// True if `a` may be the parent of `b` in the heap.
constexpr bool IsNotAfter(Entry a, Entry b) {
  return a >> kNumberBits <= b >> kNumberBits;
}

class Heap {
 public:
  void Add(Entry entry) { entries_[++size_] = entry; }

  size_t size() const { return size_; }

  Entry top() const { return entries_[1]; }

  void Order() {
    for (size_t i = size_ / 2; i > 0; --i) {
      Sink(i);
    }
  }

  void RemoveTop() {
    entries_[1] = entries_[size_--];
    Sink(1);
  }

  void ReplaceTop(Entry entry) {
    entries_[1] = entry;
    Sink(1);
  }

 private:
  void Sink(size_t at) {
    const Entry entry = entries_[at];
    for (size_t child = 2 * at; child <= size_; child = 2 * at) {
      if (child < size_ && IsNotAfter(entries_[child + 1], entries_[child])) {
        ++child;
      }
      if (IsNotAfter(entry, entries_[child])) {
        break;
      }
      entries_[at] = entries_[child];
      at = child;
    }
    entries_[at] = entry;
  }

  // Indexed from 1.
  std::array<Entry, kDeflateTreeSymbolsMax + 1> entries_;
  size_t size_ = 0;
};

// Nodes in the order in which they got their parent; the root is last.
struct Tree {
  std::array<uint16_t, kNodesMax> order;
  size_t size = 0;
  std::array<uint16_t, kNodesMax> parent;
};

void Join(Heap& heap, size_t symbol_count, Tree& tree) {
  auto next = static_cast<uint32_t>(symbol_count);
  while (heap.size() >= 2) {
    const Entry first = heap.top();
    heap.RemoveTop();
    const Entry second = heap.top();
    for (const Entry entry : {first, second}) {
      tree.order[tree.size++] = static_cast<uint16_t>(NumberOf(entry));
      tree.parent[NumberOf(entry)] = static_cast<uint16_t>(next);
    }
    heap.ReplaceTop(MakeEntry(FrequencyOf(first) + FrequencyOf(second),
                              std::max(HeightOf(first), HeightOf(second)) + 1,
                              next));
    ++next;
  }
  tree.order[tree.size++] = static_cast<uint16_t>(NumberOf(heap.top()));
}

using Counts = std::array<uint16_t, kLengthMax + 1>;

// Moves `excess` leaves that are too deep: each time a leaf of the deepest
// level above the limit becomes the sibling of one of them.
void LimitCounts(unsigned length_max, int excess, Counts& counts) {
  for (; excess > 0; excess -= 2) {
    size_t level = length_max - 1;
    while (counts[level] == 0) {
      --level;
    }
    --counts[level];
    counts[level + 1] = static_cast<uint16_t>(counts[level + 1] + 2);
    --counts[length_max];
  }
}

}  // namespace

size_t BuildDeflateLengths(std::span<const uint16_t> frequencies,
                           unsigned length_max, std::span<uint8_t> lengths) {
  const size_t symbol_count = frequencies.size();
  QUIRE_CHECK(symbol_count == lengths.size() &&
              symbol_count <= kDeflateTreeSymbolsMax);
  Heap heap;
  size_t last = 0;
  for (size_t i = 0; i < symbol_count; ++i) {
    lengths[i] = frequencies[i] != 0 ? 1 : 0;
    if (frequencies[i] != 0) {
      last = i;
      heap.Add(MakeEntry(frequencies[i], 0, static_cast<uint32_t>(i)));
    }
  }
  // The format requires two symbols: add the first ones that do not occur.
  bool has_first = heap.size() != 0;
  while (heap.size() < 2) {
    const size_t symbol = has_first && last < 2 ? last + 1 : 0;
    last = std::max(last, symbol);
    lengths[symbol] = 1;
    heap.Add(MakeEntry(1, 0, static_cast<uint32_t>(symbol)));
    has_first = true;
  }
  heap.Order();
  Tree tree;
  Join(heap, symbol_count, tree);

  std::array<uint8_t, kNodesMax> depths;
  depths[tree.order[tree.size - 1]] = 0;
  Counts counts = {};
  int excess = 0;
  for (size_t i = tree.size - 1; i-- > 0;) {
    const size_t node = tree.order[i];
    unsigned depth = depths[tree.parent[node]] + 1U;
    if (depth > length_max) {
      depth = length_max;
      ++excess;
    }
    depths[node] = static_cast<uint8_t>(depth);
    if (node < symbol_count) {
      ++counts[depth];
    }
  }
  if (excess == 0) {
    for (size_t i = 0; i < symbol_count; ++i) {
      if (lengths[i] != 0) {
        lengths[i] = depths[i];
      }
    }
    return last;
  }
  LimitCounts(length_max, excess, counts);
  // The rarest symbols get the longest codes.
  size_t at = 0;
  for (size_t length = length_max; length > 0; --length) {
    for (size_t left = counts[length]; left > 0;) {
      const size_t node = tree.order[at++];
      if (node < symbol_count) {
        lengths[node] = static_cast<uint8_t>(length);
        --left;
      }
    }
  }
  return last;
}

void BuildDeflateCodes(std::span<const uint8_t> lengths,
                       std::span<uint16_t> codes) {
  Counts counts = {};
  for (const uint8_t length : lengths) {
    ++counts[length];
  }
  counts[0] = 0;
  std::array<uint32_t, kLengthMax + 2> next = {};
  for (size_t length = 1; length <= kLengthMax; ++length) {
    next[length + 1] = (next[length] + counts[length]) << 1;
  }
  for (size_t i = 0; i < lengths.size(); ++i) {
    uint32_t code = next[lengths[i]]++;
    uint32_t reversed = 0;
    for (unsigned bit = 0; bit < lengths[i]; ++bit) {
      reversed = reversed << 1 | (code & 1);
      code >>= 1;
    }
    codes[i] = static_cast<uint16_t>(reversed);
  }
}

}  // namespace quire
