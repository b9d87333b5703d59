// SPDX-License-Identifier: Apache-2.0
//
// Decodes factors to text, for all codecs of the paper. They store a block's
// factors as two or three sequences: tokens, which are varints and state how
// much text each factor stands for; offsets into the dictionary, packed into a
// codec-dependent number of bits each, from the lowest bit of the first byte
// on; and literals, in some codecs.
//
// To read a range of the text, a reader skips the tokens before it, eight at a
// time, and nothing else.
#ifndef QUIRE_CODECS_RLZ_PAPER_FACTOR_TOKENS_H_
#define QUIRE_CODECS_RLZ_PAPER_FACTOR_TOKENS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"

namespace quire {

enum class TokenKind {
  // Token v > 0 is v bytes of the dictionary; token 0 is the one byte stored in
  // place of the offset ("Access Time Tradeoffs in Archive Compression",
  // section 2).
  kFactors,
  // Token v < kRunTokens is the next v + 1 literals; any other is the next v -
  // kRunTokens + 1 bytes of the dictionary at the next offset (section 5,
  // "Three Streams").
  kFactorsAndRuns,
};

inline constexpr uint32_t kRunTokens = 16;
// Maximum size of a token: 2^20 + kRunTokens has 21 bits.
inline constexpr size_t kTokenSizeBytesMax = 3;

// All untrusted.
struct FactorTokens {
  TokenKind kind = TokenKind::kFactors;
  ByteView tokens = {};
  // At least offset_count * offset_bits bits. The rest is unused, but a view of
  // eight more bytes makes the last factors faster.
  ByteView offsets = {};
  size_t offset_count = 0;
  unsigned offset_bits = 32;
  // For kFactorsAndRuns; literal_count of the bytes are valid. A view of some
  // more bytes is faster, too.
  ByteView literals = {};
  size_t literal_count = 0;
};

// A position between two tokens: the sizes of everything before it.
struct TokenPlace {
  size_t token_bytes = 0;
  size_t offsets = 0;
  size_t literals = 0;
  size_t text_size = 0;
};

// Moves `place` past all tokens whose text ends at or before `text_position`.
// Returns true if the next token's text contains or begins at `text_position`;
// false if the tokens end earlier: then more tokens, or the rest of the last
// one, may follow.
// Errors: DataLoss  malformed.
absl::StatusOr<bool> SkipTokens(TokenKind kind, ByteView tokens,
                                size_t text_position, TokenPlace& place);

// Fills `out` with the text that begins `skip` bytes after `place`, and moves
// `place` past all tokens it used. The last of these may stand for more text.
// REQUIRES: factors.offsets has the size that FactorTokens requires.
// Errors: DataLoss  there is less text, or a factor is not within the
//                   dictionary, or malformed.
absl::Status CopyFactorText(ByteView dictionary, const FactorTokens& factors,
                            size_t skip, TokenPlace& place,
                            MutableByteView out);

// Returns the error of a block whose tokens have `found` bytes of text.
absl::Status WrongTextSize(size_t found, size_t expected);

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_PAPER_FACTOR_TOKENS_H_
