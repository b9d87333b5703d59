// SPDX-License-Identifier: Apache-2.0
//
// Bit streams of zstd and DEFLATE, for tests.
#ifndef QUIRE_TESTING_CODECS_ZSTD_TEST_BITS_H_
#define QUIRE_TESTING_CODECS_ZSTD_TEST_BITS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "codecs/base/bytes.h"
#include "codecs/zstd/decoder/backward_bits.h"

namespace quire {

// Writes bits from the lowest of the first byte on (RFC 8878, section 4; RFC
// 1951, section 3.1.1). Owns its bytes. Thread-compatible.
class TestBitWriter {
 public:
  // Writes the lowest `count` bits of `value`. REQUIRES: count <= 64.
  TestBitWriter& Write(uint64_t value, unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      if (bit_count_++ % 8 == 0) {
        bytes_.push_back(0);
      }
      bytes_.back() |=
          static_cast<uint8_t>((value >> i & 1) << (bit_count_ - 1) % 8);
    }
    return *this;
  }

  // The bytes so far.
  const std::vector<uint8_t>& bytes() const { return bytes_; }

  // Returns the bytes of a stream for reading backwards, with its end mark.
  std::vector<uint8_t> Stream() {
    Write(1, 1);
    return bytes_;
  }

 private:
  std::vector<uint8_t> bytes_;
  size_t bit_count_ = 0;
};

// A copy of bytes, preceded by those that backward readers may read. view() is
// valid as long as the stream lives. Thread-compatible.
class TestStream {
 public:
  explicit TestStream(ByteView bytes)
      : memory_(BackwardBits::kBytesInFront, 0xA5) {
    memory_.insert(memory_.end(), bytes.begin(), bytes.end());
  }

  ByteView view() const {
    return ByteView(memory_).subspan(BackwardBits::kBytesInFront);
  }

 private:
  std::vector<uint8_t> memory_;
};

}  // namespace quire

#endif  // QUIRE_TESTING_CODECS_ZSTD_TEST_BITS_H_
