// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/coverage/block_cost.h"

#include <algorithm>
#include <bit>

#include "codecs/base/check.h"
#include "codecs/base/endian.h"

namespace quire {
namespace {

constexpr size_t kMatchSizeMin = 6;
// Cost of offset, length and the header of literals: about that of zstd.
constexpr uint32_t kMatchBits = 20;
constexpr uint32_t kBlockSizeBytesEnd = uint32_t{1} << 24;

uint32_t HashOf(uint64_t bytes, int bits) {
  // Hash of the first six bytes.
  return static_cast<uint32_t>((bytes << 16) * 0x9E3779B97F4A7C15 >>
                               (64 - bits));
}

size_t CommonSize(ByteView block, size_t a, size_t b) {
  const size_t begin = b;
  while (b + 8 <= block.size()) {
    const uint64_t difference = LoadLittleEndian<uint64_t>(&block[a]) ^
                                LoadLittleEndian<uint64_t>(&block[b]);
    if (difference != 0) {
      return b - begin + static_cast<size_t>(std::countr_zero(difference)) / 8;
    }
    a += 8;
    b += 8;
  }
  while (b < block.size() && block[a] == block[b]) {
    ++a;
    ++b;
  }
  return b - begin;
}

// log2(value) in sixteenths, rounded down to the piecewise linear function that
// is exact at powers of two. REQUIRES: value > 0.
uint32_t Log2Sixteenths(uint64_t value) {
  // The analyzer takes the value for 0.
  const int whole = static_cast<int>(std::bit_width(value | 1)) - 1;
  const uint64_t fraction = ((value << 4) >> whole) - 16;
  return static_cast<uint32_t>(whole) * 16 + static_cast<uint32_t>(fraction);
}

}  // namespace

BlockCost::BlockCost(size_t block_size_bytes_max)
    : places_(size_t{1} << kHashBits),
      base_(kBlockSizeBytesEnd),
      sums_(block_size_bytes_max + 1) {
  matches_.reserve(block_size_bytes_max / kMatchSizeMin + 1);
}

size_t BlockCost::MemoryBytesFor(size_t block_size_bytes_max) {
  return sizeof(BlockCost) + (sizeof(uint32_t) << kHashBits) +
         (block_size_bytes_max / kMatchSizeMin + 1) * sizeof(Match) +
         (block_size_bytes_max + 1) * sizeof(uint32_t);
}

void BlockCost::Estimate(ByteView block) {
  QUIRE_CHECK(block.size() < sums_.size());
  FindMatches(block);
  PriceLiterals(block);
  uint32_t sum = 0;
  size_t at = 0;
  const auto literals_until = [&](size_t end) {
    for (; at < end; ++at) {
      sums_[at] = sum;
      sum += literal_units_[block[at]];
    }
  };
  for (const Match& match : matches_) {
    literals_until(match.begin);
    // The first byte carries the whole cost.
    sums_[at++] = sum;
    sum += kMatchBits * kUnitsPerBit;
    std::fill(&sums_[at], &sums_[match.end], sum);
    at = match.end;
  }
  literals_until(block.size());
  sums_[at] = sum;
}

void BlockCost::FindMatches(ByteView block) {
  matches_.clear();
  if (base_ > UINT32_MAX - 2 * kBlockSizeBytesEnd) {
    std::fill(places_.begin(), places_.end(), 0);
    base_ = 0;
  }
  base_ += kBlockSizeBytesEnd;
  size_t at = 0;
  size_t misses = 0;
  while (at + 8 <= block.size()) {
    const auto bytes = LoadLittleEndian<uint64_t>(&block[at]);
    uint32_t& place = places_[HashOf(bytes, kHashBits)];
    const uint32_t before = place;
    place = base_ + static_cast<uint32_t>(at);
    if (before >= base_) {
      const size_t size = CommonSize(block, before - base_, at);
      if (size >= kMatchSizeMin) {
        matches_.push_back(
            {static_cast<uint32_t>(at), static_cast<uint32_t>(at + size)});
        at += size;
        misses = 0;
        continue;
      }
    }
    // The longer nothing matches, the fewer positions are tried.
    at += 1 + (misses++ >> 6);
  }
}

void BlockCost::PriceLiterals(ByteView block) {
  std::array<uint32_t, 256> counts;
  counts.fill(1);
  uint64_t total = counts.size();
  size_t at = 0;
  const auto count_until = [&](size_t end) {
    total += end - at;
    for (; at < end; ++at) {
      ++counts[block[at]];
    }
  };
  for (const Match& match : matches_) {
    count_until(match.begin);
    at = match.end;
  }
  count_until(block.size());
  const uint32_t whole = Log2Sixteenths(total);
  for (size_t value = 0; value < counts.size(); ++value) {
    literal_units_[value] = whole - Log2Sixteenths(counts[value]);
  }
}

}  // namespace quire
