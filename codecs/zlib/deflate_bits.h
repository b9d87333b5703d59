// SPDX-License-Identifier: Apache-2.0
//
// Reads bits of a DEFLATE stream, from the lowest of its first byte on (RFC
// 1951, section 3.1.1); internal to DeflateDecoder.
#ifndef QUIRE_CODECS_ZLIB_DEFLATE_BITS_H_
#define QUIRE_CODECS_ZLIB_DEFLATE_BITS_H_

#include <cstddef>
#include <cstdint>

#include "codecs/base/endian.h"

namespace quire {

// REQUIRES: count < 64.
inline uint64_t LowBits(uint64_t bits, unsigned count) {
  return bits & ((uint64_t{1} << count) - 1);
}

// Read position in a stream. Thread-compatible.
struct DeflateBits {
  uint64_t buffer = 0;
  // Number of valid bits in the buffer.
  unsigned count = 0;
  // First byte of the stream that is not in the buffer as valid bits.
  const uint8_t* next = nullptr;
  const uint8_t* end = nullptr;
  // Number of zero bytes appended to the buffer past the end.
  size_t past_end = 0;

  // Refills to at least 56 valid bits; past the end with zeros, which are
  // counted. False if zeros were consumed already.
  bool Fill();

  // REQUIRES: size <= count.
  uint32_t Take(unsigned size);

  bool IsPastEnd() const { return past_end * 8 > count; }
};

inline bool DeflateBits::Fill() {
  if (end - next >= static_cast<ptrdiff_t>(sizeof(uint64_t))) [[likely]] {
    // The bits above `count` already equal those of `next`, where they are set.
    buffer |= LoadLittleEndian<uint64_t>(next) << count;
    next += (63 - count) >> 3;
    count |= 56;
    return true;
  }
  if (IsPastEnd()) {
    return false;
  }
  // The fast path may have left bits above `count`.
  buffer = LowBits(buffer, count);
  while (count < 56) {
    if (next < end) {
      buffer |= uint64_t{*next++} << count;
    } else {
      ++past_end;
    }
    count += 8;
  }
  return true;
}

inline uint32_t DeflateBits::Take(unsigned size) {
  const auto value = static_cast<uint32_t>(LowBits(buffer, size));
  buffer >>= size;
  count -= size;
  return value;
}

}  // namespace quire

#endif  // QUIRE_CODECS_ZLIB_DEFLATE_BITS_H_
