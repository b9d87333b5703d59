// SPDX-License-Identifier: Apache-2.0
//
// Prefix codes of DEFLATE (RFC 1951, section 3.2) as decoding tables; internal
// to deflate_decoder.cc.
//
// A table is indexed by the next root_bits() bits of the stream. The low six
// bits of an entry are the size of the code and its extra bits; bits 8 to 13
// are the size of the code alone; then flags, and from bit 16 on a value. An
// entry for codes longer than the root names a second-level table, stored after
// the first, which is indexed by the bits that follow.
#ifndef QUIRE_CODECS_ZLIB_DEFLATE_CODE_H_
#define QUIRE_CODECS_ZLIB_DEFLATE_CODE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace quire {

// The value is a literal.
inline constexpr uint32_t kDeflateLiteral = uint32_t{1} << 15;
// The entry is one of the next three.
inline constexpr uint32_t kDeflateSpecial = uint32_t{1} << 14;
// No code begins with these bits, or its symbol has no meaning.
inline constexpr uint32_t kDeflateInvalid = uint32_t{1} << 7;
inline constexpr uint32_t kDeflateEndOfBlock = uint32_t{1} << 6;
// A special entry without these flags names another table: the value is the
// table's index, bits 8 to 13 the number of bits that index into it.

inline constexpr size_t kDeflateCodeLengthMax = 15;
inline constexpr size_t kDeflateSymbolCountMax = 288;

inline unsigned DeflateEntryBits(uint32_t entry) {
  return entry & 63;
}

inline unsigned DeflateEntryCodeBits(uint32_t entry) {
  return entry >> 8 & 63;
}

// Entries of the symbols, without the size of the code.
std::span<const uint32_t> DeflateLiteralAndLengthSymbols();  // 288
std::span<const uint32_t> DeflateDistanceSymbols();          // 32
// Entries of the code of code lengths: the value is the symbol.
std::span<const uint32_t> DeflateCodeLengthSymbols();  // 19

// Makes a table of the canonical code whose i-th symbol has lengths[i] bits, 0
// if it has none. Accepts exactly the codes that zlib accepts: complete codes;
// and, unless `complete_only`, also the code of no symbol and that of one
// symbol of one bit. Fills table[0, 2^root_bits) and the second-level tables
// after it; sets `root_bits` to at most `root_bits_max`.
// REQUIRES: `symbols` has an entry for each length; `table` has space for any
//           such code (see DeflateDecoder); lengths are at most 15.
// Returns false if the lengths make no such code.
bool BuildDeflateTable(std::span<const uint8_t> lengths,
                       std::span<const uint32_t> symbols,
                       unsigned root_bits_max, bool complete_only,
                       std::span<uint32_t> table, unsigned& root_bits);

}  // namespace quire

#endif  // QUIRE_CODECS_ZLIB_DEFLATE_CODE_H_
