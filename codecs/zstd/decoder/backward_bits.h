// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_ZSTD_DECODER_BACKWARD_BITS_H_
#define QUIRE_CODECS_ZSTD_DECODER_BACKWARD_BITS_H_

#include <bit>
#include <cstddef>
#include <cstdint>

#include "absl/base/attributes.h"

#include "codecs/base/bytes.h"
#include "codecs/base/endian.h"

namespace quire {

// A bit stream that was written forwards and is read from its end: Huffman and
// FSE streams alike (RFC 8878, section 4.1.2 and 4.2.2). The highest bit set in
// the last byte only marks the end.
//
// Instead of watching for the stream's begin bit by bit, it lets reads go on
// into the bytes in front of it, and counts: a stream is right only if
// UnreadBits() is 0 in the end, and what was read too much makes it negative
// for good. It never reads more than kBytesInFront in front.
//
// All is inlined into its callers, for these are compiled for several
// instruction sets.
// Thread-compatible.
class BackwardBits {
 public:
  static constexpr ptrdiff_t kBytesInFront = 8;
  // What can be read after a Refill() without another.
  static constexpr unsigned kBitsPerRefill = 57;

  // False if the stream has no end mark. Up to 56 bits can be read before the
  // first Refill().
  // REQUIRES: kBytesInFront readable bytes in front of `stream`.
  [[nodiscard]] ABSL_ATTRIBUTE_ALWAYS_INLINE bool Open(ByteView stream) {
    if (stream.empty() || stream.back() == 0) {
      return false;
    }
    begin_ = stream.data();
    at_ = stream.data() + stream.size() - kBytesInFront;
    bits_ = LoadLittleEndian<uint64_t>(at_);
    used_ = static_cast<unsigned>(std::countl_zero(bits_)) + 1;
    return true;
  }

  // The next `count` bits. REQUIRES: count < 64, and all reads since the last
  // Refill() together stay within its bound.
  ABSL_ATTRIBUTE_ALWAYS_INLINE uint64_t Read(unsigned count) {
    const uint64_t value = Peek(0, count);
    Skip(count);
    return value;
  }

  // What Read(count) would give after Skip(skipped): reads that need not wait
  // for each other. REQUIRES: as Read().
  ABSL_ATTRIBUTE_ALWAYS_INLINE uint64_t Peek(unsigned skipped,
                                             unsigned count) const {
    return (bits_ >> ((64 - used_ - (skipped + count)) & 63)) &
           ((uint64_t{1} << count) - 1);
  }

  ABSL_ATTRIBUTE_ALWAYS_INLINE void Skip(unsigned count) { used_ += count; }

  // False if far more was read than there is.
  [[nodiscard]] ABSL_ATTRIBUTE_ALWAYS_INLINE bool Refill() {
    at_ -= used_ >> 3;
    used_ &= 7;
    if (at_ < begin_ - kBytesInFront) [[unlikely]] {
      return false;
    }
    bits_ = LoadLittleEndian<uint64_t>(at_);
    return true;
  }

  ABSL_ATTRIBUTE_ALWAYS_INLINE ptrdiff_t UnreadBits() const {
    return (at_ - begin_) * 8 + 64 - static_cast<ptrdiff_t>(used_);
  }

 private:
  const uint8_t* begin_ = nullptr;
  // Where bits_ was loaded from; its highest used_ bits have been read.
  const uint8_t* at_ = nullptr;
  uint64_t bits_ = 0;
  unsigned used_ = 0;
};

}  // namespace quire

#endif  // QUIRE_CODECS_ZSTD_DECODER_BACKWARD_BITS_H_
