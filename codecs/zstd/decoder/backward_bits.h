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

// A bit stream that was written forwards and is read from its end, for Huffman
// and FSE (RFC 8878, section 4.1.2 and 4.2.2). The highest bit set in the last
// byte only marks the end.
//
// Instead of testing for the beginning at each bit, reads may run into the
// bytes before the stream, and are counted. A stream is valid only if
// UnreadBits() is 0 in the end; excess reads make it negative permanently. It
// reads at most kBytesInFront before the stream.
//
// All is inlined into its callers, which are compiled for several instruction
// sets.
// Thread-compatible.
class BackwardBits {
 public:
  static constexpr ptrdiff_t kBytesInFront = 8;
  // Bits available after one Refill().
  static constexpr unsigned kBitsPerRefill = 57;

  // Returns false if the stream has no end mark. Up to 56 bits can be read
  // before the first Refill().
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

  // Returns the next `count` bits. REQUIRES: count < 64, and all reads since
  // the last Refill() together stay within its bound.
  ABSL_ATTRIBUTE_ALWAYS_INLINE uint64_t Read(unsigned count) {
    const uint64_t value = Peek(0, count);
    Skip(count);
    return value;
  }

  // Returns what Read(count) would after Skip(skipped): such reads do not wait
  // for each other. REQUIRES: as Read().
  ABSL_ATTRIBUTE_ALWAYS_INLINE uint64_t Peek(unsigned skipped,
                                             unsigned count) const {
    return (bits_ >> ((64 - used_ - (skipped + count)) & 63)) &
           ((uint64_t{1} << count) - 1);
  }

  ABSL_ATTRIBUTE_ALWAYS_INLINE void Skip(unsigned count) { used_ += count; }

  // Returns false if reads exceeded the stream by far.
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
  // Address that bits_ was loaded from; its highest used_ bits have been read.
  const uint8_t* at_ = nullptr;
  uint64_t bits_ = 0;
  unsigned used_ = 0;
};

}  // namespace quire

#endif  // QUIRE_CODECS_ZSTD_DECODER_BACKWARD_BITS_H_
