// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/compressed_text.h"

#include <array>
#include <cassert>
#include <cstdint>

namespace quire {
namespace {

// Runs of one byte would wait for their own counter; two tables halve that.
constexpr size_t kTableCount = 2;

// Ordered pairs of places, a place with itself included, that hold equal bytes.
uint64_t EqualPairs(ByteView text) {
  std::array<std::array<uint32_t, 256>, kTableCount> counts = {};
  size_t i = 0;
  for (; i + kTableCount <= text.size(); i += kTableCount) {
    for (size_t table = 0; table < kTableCount; ++table) {
      ++counts[table][text[i + table]];
    }
  }
  for (; i < text.size(); ++i) {
    ++counts[0][text[i]];
  }
  uint64_t pairs = 0;
  for (size_t value = 0; value < 256; ++value) {
    const uint64_t count = uint64_t{counts[0][value]} + counts[1][value];
    pairs += count * count;
  }
  return pairs;
}

}  // namespace

bool LooksCompressed(ByteView text) {
  assert(text.size() <= size_t{16} << 20);
  if (text.size() < kCompressedTextSizeBytesMin) {
    return false;
  }
  const uint64_t size = text.size();
  // Without a place's pair with itself, and times 256: as many as there are
  // pairs at all, if all values are equally likely.
  const uint64_t equal = (EqualPairs(text) - size) * 256;
  const uint64_t all = size * (size - 1);
  // By chance `equal` strays from `all` by 22.6 * size: 8 times that is more
  // than ever happens.
  const uint64_t chance = 181 * size;
  return equal <= all + all / 2 && equal + chance >= all;
}

}  // namespace quire
