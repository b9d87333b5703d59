// SPDX-License-Identifier: Apache-2.0
#include "codecs/reorder/content_chunker.h"

#include <algorithm>
#include <bit>

#include "codecs/reorder/gear_hash.h"

namespace quire {
namespace {

// Returns `count` ones at the top, where the hash depends on the most preceding
// bytes.
constexpr uint64_t TopBits(int count) {
  return ~uint64_t{0} << (64 - count);
}

// Mask bits added before the average size and removed after it (section 3.3 of
// the paper: normalisation level 2).
constexpr int kNormalisation = 2;

// Returns the offset after the first byte in [begin, end) at which a chunk may
// end; `end` if there is none.
size_t FindCut(const uint8_t* bytes, size_t begin, size_t end, uint64_t mask,
               uint64_t& hash) {
  for (size_t i = begin; i < end; ++i) {
    hash = ExtendGearHash(hash, bytes[i]);
    if ((hash & mask) == 0) {
      return i + 1;
    }
  }
  return end + 1;
}

}  // namespace

ContentChunker::ContentChunker(uint32_t average_size_bytes)
    : average_(average_size_bytes),
      early_mask_(
          TopBits(std::countr_zero(average_size_bytes) + kNormalisation)),
      late_mask_(
          TopBits(std::countr_zero(average_size_bytes) - kNormalisation)) {}

size_t ContentChunker::Next(ByteView text) const {
  const size_t size = std::min(text.size(), size_bytes_max());
  if (size <= size_bytes_min()) {
    return size;
  }
  const size_t middle = std::min(size, average_);
  uint64_t hash = 0;
  const size_t early =
      FindCut(text.data(), size_bytes_min(), middle, early_mask_, hash);
  if (early <= middle) {
    return early;
  }
  return std::min(FindCut(text.data(), middle, size, late_mask_, hash), size);
}

}  // namespace quire
