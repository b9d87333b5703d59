// SPDX-License-Identifier: Apache-2.0
//
// Reads and writes integers as bytes. All of Quire's formats are little-endian;
// no other code casts a pointer into file or network data to an integer type.
#ifndef QUIRE_CODECS_BASE_ENDIAN_H_
#define QUIRE_CODECS_BASE_ENDIAN_H_

#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>

namespace quire {

static_assert(std::endian::native == std::endian::little,
              "Quire is built for little-endian machines only");

// REQUIRES: sizeof(T) readable bytes at `from`; any alignment.
template <std::unsigned_integral T>
inline T LoadLittleEndian(const uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

// REQUIRES: sizeof(T) writable bytes at `to`; any alignment.
template <std::unsigned_integral T>
inline void StoreLittleEndian(T value, uint8_t* to) {
  std::memcpy(to, &value, sizeof(value));
}

}  // namespace quire

#endif  // QUIRE_CODECS_BASE_ENDIAN_H_
