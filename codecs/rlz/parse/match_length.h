// SPDX-License-Identifier: Apache-2.0
//
// Length of equal text at two positions: the innermost loop of every parse.
#ifndef QUIRE_CODECS_RLZ_PARSE_MATCH_LENGTH_H_
#define QUIRE_CODECS_RLZ_PARSE_MATCH_LENGTH_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "codecs/base/bytes.h"
#include "codecs/base/endian.h"

namespace quire {

// Returns the length of the common prefix of `a` and `b`, at most `limit`.
// REQUIRES: `limit` readable bytes at both, which may overlap.
inline uint32_t EqualBytes(const uint8_t* a, const uint8_t* b, uint32_t limit) {
  uint32_t length = 0;
  while (limit - length >= sizeof(uint64_t)) {
    const uint64_t difference = LoadLittleEndian<uint64_t>(a + length) ^
                                LoadLittleEndian<uint64_t>(b + length);
    if (difference != 0) {
      return length + static_cast<uint32_t>(std::countr_zero(difference)) / 8;
    }
    length += sizeof(uint64_t);
  }
  while (length < limit && a[length] == b[length]) {
    ++length;
  }
  return length;
}

// Returns the length of the common suffix of the bytes before `a` and `b`, at
// most `limit`. REQUIRES: `limit` readable bytes before both.
inline uint32_t EqualBytesBefore(const uint8_t* a, const uint8_t* b,
                                 uint32_t limit) {
  uint32_t length = 0;
  while (length < limit && *(a - length - 1) == *(b - length - 1)) {
    ++length;
  }
  return length;
}

// A block and the dictionary before it as one text, although they are separate
// in memory. Positions count from the block's first byte. All sizes and
// distances are in bytes. A view, thread-compatible: both texts must outlive
// it.
class BlockText {
 public:
  // REQUIRES: dictionary.size() + block.size() < 2^32.
  BlockText(ByteView dictionary, ByteView block)
      : dictionary_(dictionary), block_(block) {}

  ByteView dictionary() const { return dictionary_; }

  ByteView block() const { return block_; }

  uint32_t size() const { return static_cast<uint32_t>(block_.size()); }

  // Distance from the dictionary offset `place` to a position in the block.
  uint32_t DistanceTo(uint32_t place, uint32_t position) const {
    return static_cast<uint32_t>(dictionary_.size()) - place + position;
  }

  // Returns true if the byte `distance` before `position` exists.
  // REQUIRES: distance > 0.
  bool HasSource(uint32_t position, uint32_t distance) const {
    return distance <= position || distance - position <= dictionary_.size();
  }

  // Returns the maximum length of a copy to `position` from `distance` before
  // it that ends at `end` or earlier; 0 if the source is before the dictionary.
  // REQUIRES: position <= end <= size(); distance > 0.
  uint32_t MatchLength(uint32_t position, uint32_t distance,
                       uint32_t end) const {
    const uint8_t* const target = block_.data() + position;
    const uint32_t limit = end - position;
    if (distance <= position) {
      return EqualBytes(target - distance, target, limit);
    }
    const uint32_t before = distance - position;
    if (before > dictionary_.size()) {
      return 0;
    }
    const uint32_t length =
        EqualBytes(dictionary_.data() + (dictionary_.size() - before), target,
                   std::min(before, limit));
    return length < before || before >= limit
               ? length
               : length +
                     EqualBytes(block_.data(), target + before, limit - before);
  }

  // Returns how far such a copy can be extended backwards, at most `limit`
  // bytes.
  // REQUIRES: limit <= position; HasSource(position, distance).
  uint32_t MatchLengthBefore(uint32_t position, uint32_t distance,
                             uint32_t limit) const {
    const uint8_t* const target = block_.data() + position;
    if (distance <= position) {
      // Stop at the block's start: the gain beyond it is not worth it.
      return EqualBytesBefore(target - distance, target,
                              std::min(limit, position - distance));
    }
    const size_t place = dictionary_.size() - (distance - position);
    return EqualBytesBefore(
        dictionary_.data() + place, target,
        static_cast<uint32_t>(std::min<size_t>(limit, place)));
  }

 private:
  ByteView dictionary_;
  ByteView block_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_PARSE_MATCH_LENGTH_H_
