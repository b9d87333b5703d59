// SPDX-License-Identifier: Apache-2.0
//
// The codecs of the paper store a block's factors as two or three sequences:
// tokens, which are varints and say how much text each factor stands for;
// offsets into the dictionary, packed into as many bits each as the codec says,
// from the lowest bit of the first byte on; and perhaps literals. This is what
// turns them back into text, the same for all of them.
//
// A reader of a range of the text goes through the tokens before it, eight at
// a time, and through nothing else.
#ifndef QUIRE_CODECS_RLZ_PAPER_FACTOR_TOKENS_H_
#define QUIRE_CODECS_RLZ_PAPER_FACTOR_TOKENS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"

namespace quire {

enum class TokenKind {
  // Token v > 0 is v bytes of the dictionary; token 0 the one byte that stands
  // where the offset would ("Access Time Tradeoffs in Archive Compression",
  // section 2).
  kFactors,
  // Token v < kRunTokens is the next v + 1 literals, any other the next
  // v - kRunTokens + 1 bytes of the dictionary at the next offset (section 5,
  // "Three Streams").
  kFactorsAndRuns,
};

inline constexpr uint32_t kRunTokens = 16;
// Of a token: 2^20 + kRunTokens has 21 bits.
inline constexpr size_t kTokenSizeBytesMax = 3;

// All untrusted.
struct FactorTokens {
  TokenKind kind = TokenKind::kFactors;
  ByteView tokens = {};
  // At least offset_count * offset_bits bits. What is behind them is not used,
  // but a view of eight bytes more makes the last factors faster.
  ByteView offsets = {};
  size_t offset_count = 0;
  unsigned offset_bits = 32;
  // Of kFactorsAndRuns. Likewise faster with a view of some bytes more;
  // literal_count are good.
  ByteView literals = {};
  size_t literal_count = 0;
};

// A place between two tokens: what is before it.
struct TokenPlace {
  size_t token_bytes = 0;
  size_t offsets = 0;
  size_t literals = 0;
  size_t text_size = 0;
};

// Moves `place` on over all tokens whose text ends at or before
// `text_position`. Returns true if what is behind `place` ends behind
// `text_position`, or begins there; false if the tokens end before that: more
// of them, or the rest of the last one, may follow. Errors: DataLoss malformed.
absl::StatusOr<bool> SkipTokens(TokenKind kind, ByteView tokens,
                                size_t text_position, TokenPlace& place);

// Writes the text that begins `skip` bytes behind `place` to `out`, until that
// is full, and moves `place` on over all tokens it used, the last of which may
// stand for more text.
// REQUIRES: factors.offsets is as large as FactorTokens says.
// Errors: DataLoss  there is less text, or a factor is not within the
//                   dictionary, or malformed.
absl::Status CopyFactorText(ByteView dictionary, const FactorTokens& factors,
                            size_t skip, TokenPlace& place,
                            MutableByteView out);

// The error of a block whose tokens have `found` bytes of text.
absl::Status WrongTextSize(size_t found, size_t expected);

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_PAPER_FACTOR_TOKENS_H_
