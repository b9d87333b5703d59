// SPDX-License-Identifier: Apache-2.0
//
// LEB128 variable-length integers, as protobuf and DWARF have them (DWARF 5,
// section 7.6): seven bits a byte, low bits first, the high bit set on all
// bytes but the last. A number has one form here, the shortest: what is stored
// twice is then the same bytes, and a reader refuses the others.
//
// All functions are pure, hence thread-safe.
#ifndef QUIRE_CODECS_BASE_VARINT_H_
#define QUIRE_CODECS_BASE_VARINT_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"

namespace quire {

// Of any 64-bit number: nine times seven bits, and one.
inline constexpr size_t kVarintSizeBytesMax = 10;

// Appends 1 to kVarintSizeBytesMax bytes to `out`.
inline void AppendVarint(uint64_t value, std::string& out) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>((value & 0x7F) | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

// Takes one integer off the front of `in`, which on an error stays as it was.
// Errors: DataLoss  `in` ends inside it, or it does not fit 64 bits, or it is
//                   not in its shortest form.
inline absl::StatusOr<uint64_t> TakeVarint(ByteView& in) {
  uint64_t value = 0;
  for (size_t i = 0; i < kVarintSizeBytesMax && i < in.size(); ++i) {
    const uint64_t byte = in[i];
    if (i == kVarintSizeBytesMax - 1 && byte > 1) {
      break;
    }
    value |= (byte & 0x7F) << (7 * i);
    if (byte < 0x80) {
      if (byte == 0 && i > 0) {
        break;
      }
      in = in.subspan(i + 1);
      return value;
    }
  }
  return absl::DataLossError("malformed variable-length integer");
}

// Signed integers of small magnitude as small unsigned ones: 0, -1, 1, -2, ...
// become 0, 1, 2, 3, ...; for every 64-bit number, without overflow.
inline uint64_t ZigZag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^
         static_cast<uint64_t>(value >> 63);
}

// The inverse.
inline int64_t UnZigZag(uint64_t value) {
  return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
}

}  // namespace quire

#endif  // QUIRE_CODECS_BASE_VARINT_H_
