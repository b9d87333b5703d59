// SPDX-License-Identifier: Apache-2.0
//
// LEB128 variable-length integers, as in protobuf and DWARF (DWARF 5, section
// 7.6): seven bits per byte, low bits first, the high bit set on all bytes
// except the last. Only the shortest form is valid, so equal values have equal
// bytes; readers reject others.
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

// Maximum for any 64-bit number: nine times seven bits, and one.
inline constexpr size_t kVarintSizeBytesMax = 10;

// Appends 1 to kVarintSizeBytesMax bytes to `out`.
inline void AppendVarint(uint64_t value, std::string& out) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>((value & 0x7F) | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

// Removes one integer from the front of `in`; on an error `in` stays unchanged.
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

// Maps signed integers of small magnitude to small unsigned ones: 0, -1, 1, -2,
// ... to 0, 1, 2, 3, ...; for every 64-bit number, without overflow.
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
