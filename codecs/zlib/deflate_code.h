// SPDX-License-Identifier: Apache-2.0
//
// Prefix codes of DEFLATE (RFC 1951, section 3.2) as tables for decoding; of
// interest to deflate_decoder.cc only.
//
// A table is looked up with the next root_bits() bits of the stream. An entry
// has in its low six bits how many bits the code and what belongs to it take;
// in bits 8 to 13 how many the code alone takes; flags; and from bit 16 on a
// value. An entry for codes longer than the root names another table, behind
// the first, for the bits that follow.
#ifndef QUIRE_CODECS_ZLIB_DEFLATE_CODE_H_
#define QUIRE_CODECS_ZLIB_DEFLATE_CODE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace quire {

// The value is a byte of text.
inline constexpr uint32_t kDeflateLiteral = uint32_t{1} << 15;
// One of the next three.
inline constexpr uint32_t kDeflateSpecial = uint32_t{1} << 14;
// No code begins like this, or its symbol has no meaning.
inline constexpr uint32_t kDeflateInvalid = uint32_t{1} << 7;
inline constexpr uint32_t kDeflateEndOfBlock = uint32_t{1} << 6;
// Neither of these, but special: the value is where another table begins; bits
// 8 to 13 say how many bits it is looked up with.

inline constexpr size_t kDeflateCodeLengthMax = 15;
inline constexpr size_t kDeflateSymbolCountMax = 288;

inline unsigned DeflateEntryBits(uint32_t entry) {
  return entry & 63;
}

inline unsigned DeflateEntryCodeBits(uint32_t entry) {
  return entry >> 8 & 63;
}

// What a symbol means: an entry whose lengths of the code are left out.
std::span<const uint32_t> DeflateLiteralAndLengthSymbols();  // 288
std::span<const uint32_t> DeflateDistanceSymbols();          // 32
// Of the code of code lengths: the value is the symbol.
std::span<const uint32_t> DeflateCodeLengthSymbols();  // 19

// Makes a table of the canonical code whose i-th symbol has lengths[i] bits, 0
// if it has none. Takes exactly the codes that zlib takes: those that are
// complete; and, unless `complete_only`, also the code of no symbol and that of
// one symbol of one bit. Fills table[0, 2^root_bits) and what it needs behind;
// `root_bits` is set to at most `root_bits_max`.
// REQUIRES: `symbols` has an entry for each length; `table` has space for any
//           such code (see DeflateDecoder); lengths are at most 15.
// Returns false if the lengths make no such code.
bool BuildDeflateTable(std::span<const uint8_t> lengths,
                       std::span<const uint32_t> symbols,
                       unsigned root_bits_max, bool complete_only,
                       std::span<uint32_t> table, unsigned& root_bits);

}  // namespace quire

#endif  // QUIRE_CODECS_ZLIB_DEFLATE_CODE_H_
