// SPDX-License-Identifier: Apache-2.0
//
// What tokens stand for, one or up to eight at a time; of interest to
// factor_tokens.cc only, whose header says what tokens are. Looking for the
// place of a byte in a block is adding up tokens until it is reached: most are
// one byte long, so that eight of them fit a word and are added by arithmetic
// on the whole of it (bytes side by side, none of which may overflow into the
// next: hence the bounds below).
//
// All functions are pure, hence thread-safe; sizes and counts are in bytes of
// text, offsets and literals as the block has them.
#ifndef QUIRE_CODECS_RLZ_PAPER_TOKEN_SUMS_H_
#define QUIRE_CODECS_RLZ_PAPER_TOKEN_SUMS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "codecs/base/bytes.h"
#include "codecs/rlz/paper/factor_tokens.h"

namespace quire {

// A one, and the highest bit, in each byte of a word.
inline constexpr uint64_t kByteOnes = 0x0101010101010101;
inline constexpr uint64_t kByteHighBits = 0x80 * kByteOnes;

// The sum of the eight bytes of a word. REQUIRES: each is below 0xFF, and so
// any two make less than the 16 bits that they are added in.
inline uint64_t SumOfBytes(uint64_t bytes) {
  constexpr uint64_t kEven = 0x00FF00FF00FF00FF;
  const uint64_t pairs = (bytes & kEven) + (bytes >> 8 & kEven);
  return (pairs * 0x0001000100010001) >> 48;
}

// What one token, or up to eight, stand for.
struct TokenSum {
  // Bytes of text.
  size_t text_size;
  // Offsets into the dictionary that they take from the block's list of these.
  size_t offsets;
  // Bytes that they take from its list of literals.
  size_t literals;
};

// Of tokens of TokenKind::kFactors.
struct FactorTokenSums {
  // Of any token.
  static TokenSum Of(uint32_t token) {
    return {
        .text_size = std::max<uint32_t>(token, 1), .offsets = 1, .literals = 0};
  }

  // Of `count` tokens, in the lowest bytes of `tokens`; the others are 0.
  // REQUIRES: all are below 0x80.
  static TokenSum OfShort(uint64_t tokens, size_t count) {
    const uint64_t not_zero = (tokens + 0x7F * kByteOnes) & kByteHighBits;
    const uint64_t zero = (not_zero ^ kByteHighBits) >> 7;
    return {.text_size = SumOfBytes(tokens + zero) - (8 - count),
            .offsets = count,
            .literals = 0};
  }
};

// Of tokens of TokenKind::kFactorsAndRuns.
struct RunTokenSums {
  // Of any token.
  static TokenSum Of(uint32_t token) {
    if (token < kRunTokens) {
      return {.text_size = token + 1, .offsets = 0, .literals = token + 1};
    }
    return {.text_size = token - kRunTokens + 1, .offsets = 1, .literals = 0};
  }

  // As FactorTokenSums::OfShort(), with the same requirements.
  static TokenSum OfShort(uint64_t tokens, size_t count) {
    const uint64_t is_factor =
        ((tokens + (0x80 - kRunTokens) * kByteOnes) & kByteHighBits) >> 7;
    const uint64_t offsets = SumOfBytes(is_factor);
    const uint64_t runs = tokens & ~(is_factor * 0xFF);
    return {.text_size = SumOfBytes(tokens) + count - kRunTokens * offsets,
            .offsets = offsets,
            .literals = SumOfBytes(runs) + count - offsets};
  }
};

// Moves `place` past tokens that are `token_bytes` long and stand for `sum`.
inline void Advance(const TokenSum& sum, size_t token_bytes,
                    TokenPlace& place) {
  place.token_bytes += token_bytes;
  place.offsets += sum.offsets;
  place.literals += sum.literals;
  place.text_size += sum.text_size;
}

// A token as it is stored: a varint in its shortest form, of at most
// kTokenSizeBytesMax bytes.
struct Token {
  uint32_t value = 0;
  size_t size = 0;
};

// The token at the front of `bytes`, which are not trusted. `size` is the bytes
// it takes; 0 if `bytes` ends inside it, larger than kTokenSizeBytesMax if it
// is malformed.
inline Token ReadToken(ByteView bytes) {
  Token token;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i == kTokenSizeBytesMax) {
      return {.value = 0, .size = kTokenSizeBytesMax + 1};
    }
    token.value |= uint32_t{bytes[i] & 0x7Fu} << (7 * i);
    if (bytes[i] < 0x80) {
      token.size = bytes[i] == 0 && i > 0 ? kTokenSizeBytesMax + 1 : i + 1;
      return token;
    }
  }
  return {};
}

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_PAPER_TOKEN_SUMS_H_
