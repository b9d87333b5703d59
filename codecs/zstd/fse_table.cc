// SPDX-License-Identifier: Apache-2.0
#include "codecs/zstd/fse_table.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdlib>

#include "codecs/base/endian.h"

namespace quire {
namespace {

// Longer than any table description: 4 bits, then at most kFseLogMax + 1 for a
// symbol and 2 for each step over absent ones.
constexpr size_t kDescriptionSizeMax = 96;

// The front of a table description, with zeros behind it.
class ForwardBits {
 public:
  explicit ForwardBits(ByteView from) {
    std::ranges::copy(from.first(std::min(from.size(), kDescriptionSizeMax)),
                      padded_.begin());
  }

  // The next 32 bits, some of which are perhaps not there.
  uint32_t Peek() const {
    return static_cast<uint32_t>(
        LoadLittleEndian<uint64_t>(&padded_[bit_index_ / 8]) >> bit_index_ % 8);
  }

  void Skip(unsigned count) { bit_index_ += count; }

  size_t BytesRead() const { return (bit_index_ + 7) / 8; }

 private:
  std::array<uint8_t, kDescriptionSizeMax + sizeof(uint64_t)> padded_ = {};
  size_t bit_index_ = 0;
};

// Reads how many symbols are absent behind an absent one.
unsigned ReadRepeat(unsigned symbol_max, ForwardBits& bits) {
  unsigned repeat = 0;
  while (repeat <= symbol_max) {
    const unsigned more = bits.Peek() & 3;
    bits.Skip(2);
    repeat += more;
    if (more != 3) {
      break;
    }
  }
  return repeat;
}

// Reads a symbol's count, at most `left`, which is stored as itself + 1; the
// lowest values take a bit less than the others.
int ReadCount(int left, ForwardBits& bits) {
  const int value_max = left + 1;
  const auto width =
      static_cast<unsigned>(std::bit_width(static_cast<unsigned>(value_max)));
  const int threshold = 1 << (width - 1);
  const int short_count = 2 * threshold - 1 - value_max;
  const auto next = static_cast<int>(bits.Peek() & 0xFFFF);
  if ((next & (threshold - 1)) < short_count) {
    bits.Skip(width - 1);
    return (next & (threshold - 1)) - 1;
  }
  bits.Skip(width);
  const int value = next & (2 * threshold - 1);
  return (value < threshold ? value : value - short_count) - 1;
}

// The symbol of each state: those rarer than one state have the last ones, the
// others are strewn over the rest.
void SpreadSymbols(const FseCounts& counts, FseSteps& steps) {
  const unsigned size = 1u << counts.log;
  unsigned end = size;
  for (unsigned symbol = 0; symbol < counts.symbol_count; ++symbol) {
    if (counts.counts[symbol] == -1) {
      steps[--end].symbol = static_cast<uint8_t>(symbol);
    }
  }
  const unsigned stride = size / 2 + size / 8 + 3;
  unsigned state = 0;
  for (unsigned symbol = 0; symbol < counts.symbol_count; ++symbol) {
    for (int i = 0; i < counts.counts[symbol]; ++i) {
      steps[state].symbol = static_cast<uint8_t>(symbol);
      do {
        state = (state + stride) % size;
      } while (state >= end);
    }
  }
}

}  // namespace

size_t ReadFseCounts(ByteView stored, unsigned log_max, unsigned symbol_max,
                     FseCounts& counts) {
  assert(log_max <= kFseLogMax && symbol_max <= kFseSymbolMax);
  ForwardBits bits(stored);
  counts.log = (bits.Peek() & 15) + 5;
  bits.Skip(4);
  if (counts.log > log_max) {
    return 0;
  }
  int left = 1 << counts.log;
  unsigned symbol = 0;
  while (left > 0) {
    if (symbol > symbol_max) {
      return 0;
    }
    const int count = ReadCount(left, bits);
    counts.counts[symbol++] = static_cast<int16_t>(count);
    left -= std::abs(count);
    if (count == 0) {
      const unsigned absent = ReadRepeat(symbol_max, bits);
      if (absent > symbol_max + 1 - symbol) {
        return 0;
      }
      std::fill_n(&counts.counts[symbol], absent, int16_t{0});
      symbol += absent;
    }
  }
  counts.symbol_count = symbol;
  return bits.BytesRead() <= stored.size() ? bits.BytesRead() : 0;
}

void BuildFseSteps(const FseCounts& counts, FseSteps& steps) {
  SpreadSymbols(counts, steps);
  std::array<uint16_t, kFseSymbolMax + 1> next;
  for (unsigned symbol = 0; symbol < counts.symbol_count; ++symbol) {
    next[symbol] = static_cast<uint16_t>(std::abs(counts.counts[symbol]));
  }
  const unsigned size = 1u << counts.log;
  for (unsigned state = 0; state < size; ++state) {
    FseStep& step = steps[state];
    const unsigned number = next[step.symbol]++;
    const unsigned bit_count =
        counts.log + 1 - static_cast<unsigned>(std::bit_width(number));
    step.bit_count = static_cast<uint8_t>(bit_count);
    step.next_base = static_cast<uint16_t>((number << bit_count) - size);
  }
}

}  // namespace quire
