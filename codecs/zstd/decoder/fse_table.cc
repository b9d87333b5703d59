// SPDX-License-Identifier: Apache-2.0
#include "codecs/zstd/decoder/fse_table.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "codecs/base/check.h"
#include "codecs/base/endian.h"

namespace quire {
namespace {

// Upper bound on any table description: 4 bits, then at most kFseLogMax + 1 for
// a symbol and 2 for each step over absent ones.
constexpr size_t kDescriptionSizeMax = 96;

// The front of a table description, followed by zeros.
class ForwardBits {
 public:
  explicit ForwardBits(ByteView from) {
    std::ranges::copy(from.first(std::min(from.size(), kDescriptionSizeMax)),
                      padded_.begin());
  }

  // The next 32 bits, zeros after the end.
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

// Reads the number of absent symbols that follow an absent one.
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

// Reads a symbol's count, at most `left`, stored as count + 1; the lowest
// values take one bit less than the others.
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

// Writes a symbol to the next `count` entries, and perhaps some more: whole
// words, as most counts are small.
inline void WriteRun(unsigned symbol, size_t count, uint8_t* to) {
  const uint64_t word = symbol * uint64_t{0x0101010101010101};
  StoreLittleEndian(word, to);
  for (size_t done = sizeof(word); done < count; done += sizeof(word)) {
    StoreLittleEndian(word, to + done);
  }
}

}  // namespace

size_t ReadFseCounts(ByteView stored, unsigned log_max, unsigned symbol_max,
                     FseCounts& counts) {
  QUIRE_CHECK(log_max <= kFseLogMax && symbol_max <= kFseSymbolMax);
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

// Symbols rarer than one state have the last states; the others are spread over
// the rest. No branches depend on the counts.
void SpreadFseSymbols(const FseCounts& counts, FseSymbols& symbols) {
  constexpr size_t kSizeMax = size_t{1} << kFseLogMax;
  std::array<uint8_t, kSizeMax + sizeof(uint64_t)> runs;
  std::array<uint8_t, kFseSymbolMax + 1> rare;
  size_t run_end = 0;
  size_t rare_count = 0;
  for (unsigned symbol = 0; symbol < counts.symbol_count; ++symbol) {
    const int count = counts.counts[symbol];
    rare[rare_count] = static_cast<uint8_t>(symbol);
    rare_count += count < 0 ? 1 : 0;
    const size_t run = count > 0 ? static_cast<size_t>(count) : 0;
    WriteRun(symbol, run, &runs[run_end]);
    run_end += run;
  }
  const size_t size = size_t{1} << counts.log;
  const size_t end = size - rare_count;
  const size_t stride = size / 2 + size / 8 + 3;
  size_t state = 0;
  size_t next = 0;
  for (size_t i = 0; i < size; ++i) {
    // A state that is skipped is written and then overwritten below.
    symbols[state] = runs[next];
    next += state < end ? 1 : 0;
    state = (state + stride) % size;
  }
  for (size_t i = 0; i < rare_count; ++i) {
    symbols[size - 1 - i] = rare[i];
  }
}

}  // namespace quire
