// SPDX-License-Identifier: Apache-2.0
//
// Prefix codes as zlib and gzip choose them; internal to
// deflate_block_writer.cc. Several codes can be optimal, and the choice depends
// on how ties are broken. The steps here are therefore theirs: a binary heap,
// ties by height, lengths limited as RFC 1951's authors did it.
#ifndef QUIRE_CODECS_DEFLATE_DEFLATE_TREE_H_
#define QUIRE_CODECS_DEFLATE_DEFLATE_TREE_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace quire {

inline constexpr size_t kDeflateTreeSymbolsMax = 286;

// Sets lengths[i], in bits, for each symbol by its frequency; 0 for symbols
// that do not occur, except that at least two symbols get a length. Returns the
// last symbol that has one.
// REQUIRES: as many frequencies as lengths, 2 to kDeflateTreeSymbolsMax, with a
//           sum of at most 65,535; codes of length_max bits suffice for all.
size_t BuildDeflateLengths(std::span<const uint16_t> frequencies,
                           unsigned length_max, std::span<uint8_t> lengths);

// Sets codes[i] to the canonical code of lengths[i] bits (RFC 1951, section
// 3.2.2), reversed: its first bit is the lowest.
void BuildDeflateCodes(std::span<const uint8_t> lengths,
                       std::span<uint16_t> codes);

}  // namespace quire

#endif  // QUIRE_CODECS_DEFLATE_DEFLATE_TREE_H_
