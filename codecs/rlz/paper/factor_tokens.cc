// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/paper/factor_tokens.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "absl/strings/str_cat.h"

#include "codecs/base/check.h"
#include "codecs/base/endian.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

// To find the position of a byte in a block, tokens are added up until it is
// reached. Most tokens have one byte, so that eight of them fit into a word and
// are added by arithmetic on the whole word. No byte may overflow into the
// next, hence the bounds below.

// A one, and the highest bit, in each byte of a word.
constexpr uint64_t kByteOnes = 0x0101010101010101;
constexpr uint64_t kByteHighBits = 0x80 * kByteOnes;

// Returns the sum of the eight bytes of a word. REQUIRES: each is below 0xFF,
// so that any two sum to less than the 16 bits that they are added in.
inline uint64_t SumOfBytes(uint64_t bytes) {
  constexpr uint64_t kEven = 0x00FF00FF00FF00FF;
  const uint64_t pairs = (bytes & kEven) + (bytes >> 8 & kEven);
  return (pairs * 0x0001000100010001) >> 48;
}

// Sums over one token, or up to eight.
struct TokenSum {
  // Bytes of text.
  size_t text_size;
  // Offsets that they take from the block's list.
  size_t offsets;
  // Bytes that they take from the block's literals.
  size_t literals;
};

// For tokens of TokenKind::kFactors.
struct FactorTokenSums {
  // Sums over one token.
  static TokenSum Of(uint32_t token) {
    return {
        .text_size = std::max<uint32_t>(token, 1), .offsets = 1, .literals = 0};
  }

  // Sums over `count` tokens, in the lowest bytes of `tokens`; the other bytes
  // are 0.
  // REQUIRES: all are below 0x80.
  static TokenSum OfShort(uint64_t tokens, size_t count) {
    const uint64_t not_zero = (tokens + 0x7F * kByteOnes) & kByteHighBits;
    const uint64_t zero = (not_zero ^ kByteHighBits) >> 7;
    return {.text_size = SumOfBytes(tokens + zero) - (8 - count),
            .offsets = count,
            .literals = 0};
  }
};

// For tokens of TokenKind::kFactorsAndRuns.
struct RunTokenSums {
  // Sums over one token.
  static TokenSum Of(uint32_t token) {
    if (token < kRunTokens) {
      return {.text_size = token + 1, .offsets = 0, .literals = token + 1};
    }
    return {.text_size = token - kRunTokens + 1, .offsets = 1, .literals = 0};
  }

  // Same as FactorTokenSums::OfShort(), with its requirements.
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

// Moves `place` past tokens of `token_bytes` bytes that sum to `sum`.
inline void Advance(const TokenSum& sum, size_t token_bytes,
                    TokenPlace& place) {
  place.token_bytes += token_bytes;
  place.offsets += sum.offsets;
  place.literals += sum.literals;
  place.text_size += sum.text_size;
}

// A stored token: a varint in its shortest form, of at most kTokenSizeBytesMax
// bytes.
struct Token {
  uint32_t value = 0;
  size_t size = 0;
};

// Reads the token at the front of `bytes`, which is untrusted. `size` is 0 if
// `bytes` ends inside it, and larger than kTokenSizeBytesMax if it is
// malformed.
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

// Number of offsets by which prefetching into the cache is ahead: about the
// time of one memory access. Two lines per factor, since half of the factors
// cross a line.
constexpr size_t kPrefetchDistance = 24;
constexpr size_t kCacheLineSize = 64;
// Copies are made in steps of this size: most take one.
constexpr size_t kCopyStep = 32;
static_assert(kRunTokens <= kCopyStep);
// Size of the load of an offset.
constexpr size_t kLoadSize = sizeof(uint64_t);

absl::Status MalformedToken() {
  return absl::DataLossError("malformed variable-length integer");
}

template <typename Kind>
absl::StatusOr<bool> SkipTokensOf(ByteView tokens, size_t text_position,
                                  TokenPlace& place) {
  QUIRE_DCHECK(place.text_size <= text_position);
  while (tokens.size() - place.token_bytes >= sizeof(uint64_t)) {
    // Take the leading short tokens, and then the long one after them.
    const auto eight =
        LoadLittleEndian<uint64_t>(tokens.data() + place.token_bytes);
    const auto short_bits =
        static_cast<unsigned>(std::countr_zero(eight & kByteHighBits) & ~7);
    if (short_bits > 0) {
      const size_t count = short_bits / 8;
      const TokenSum sum =
          Kind::OfShort(eight & (~uint64_t{0} >> (64 - short_bits)), count);
      if (sum.text_size > text_position - place.text_size) {
        break;
      }
      Advance(sum, count, place);
      if (count == sizeof(uint64_t)) {
        continue;
      }
    }
    const Token token = ReadToken(tokens.subspan(place.token_bytes));
    if (token.size == 0) {
      break;
    }
    if (token.size > kTokenSizeBytesMax) {
      return MalformedToken();
    }
    const TokenSum sum = Kind::Of(token.value);
    if (sum.text_size > text_position - place.text_size) {
      return true;
    }
    Advance(sum, token.size, place);
  }
  while (true) {
    const Token token = ReadToken(tokens.subspan(place.token_bytes));
    if (token.size == 0) {
      return place.text_size == text_position;
    }
    if (token.size > kTokenSizeBytesMax) {
      return MalformedToken();
    }
    const TokenSum sum = Kind::Of(token.value);
    if (sum.text_size > text_position - place.text_size) {
      return true;
    }
    Advance(sum, token.size, place);
  }
}

inline void CopyStep(const uint8_t* from, uint8_t* to) {
  std::memcpy(to, from, kCopyStep / 2);
  std::memcpy(to + kCopyStep / 2, from + kCopyStep / 2, kCopyStep / 2);
}

// kBits is the width of offsets, or 0 if it is only known at run time.
template <typename Kind, unsigned kBits>
class Copier {
 public:
  Copier(ByteView dictionary, const FactorTokens& factors, TokenPlace& place,
         MutableByteView out)
      : dictionary_(dictionary),
        factors_(factors),
        place_(place),
        out_(out),
        bits_(kBits == 0 ? factors.offset_bits : kBits),
        mask_((uint64_t{1} << bits_) - 1) {}

  absl::Status Run(size_t skip) {
    if (skip > 0) {
      QUIRE_RETURN_IF_ERROR(CopyOne(skip));
    }
    while (done_ < out_.size()) {
      CopyFast();
      // Not checked per run: CopyFast() only respects the readable size, which
      // may be larger.
      if (place_.literals > factors_.literal_count) {
        return TooFewLiterals();
      }
      if (done_ < out_.size()) {
        QUIRE_RETURN_IF_ERROR(CopyOne(0));
      }
    }
    return absl::OkStatus();
  }

 private:
  // REQUIRES: kLoadSize bytes are readable.
  uint64_t LoadOffset(size_t index) const {
    const size_t bit = index * bits_;
    return LoadLittleEndian<uint64_t>(factors_.offsets.data() + bit / 8) >>
               bit % 8 &
           mask_;
  }

  uint64_t LoadOffsetCarefully(size_t index) const {
    const size_t bit = index * bits_;
    uint64_t bytes = 0;
    const size_t size = std::min(kLoadSize, factors_.offsets.size() - bit / 8);
    std::memcpy(&bytes, factors_.offsets.data() + bit / 8, size);
    return bytes >> bit % 8 & mask_;
  }

  // Number of offsets that LoadOffset() may load.
  size_t LoadableOffsets() const {
    if (factors_.offsets.size() < kLoadSize) {
      return 0;
    }
    return std::min(factors_.offset_count,
                    (factors_.offsets.size() - kLoadSize) * 8 / bits_ + 1);
  }

  // Unchecked: a prefetch of any address is harmless.
  void Prefetch(size_t index) const {
    // A pointer past the dictionary could not be computed, an address can.
    // NOLINTBEGIN(performance-no-int-to-ptr)
    const uintptr_t place =
        reinterpret_cast<uintptr_t>(dictionary_.data()) + LoadOffset(index);
    __builtin_prefetch(reinterpret_cast<const void*>(place));
    __builtin_prefetch(
        reinterpret_cast<const void*>(place + kCacheLineSize - 1));
    // NOLINTEND(performance-no-int-to-ptr)
  }

  // Copies until an end is near or a token is irregular. CopyOne() handles the
  // last factors, tokens of three bytes, and all errors. Has no branch between
  // literals and factors, which would be unpredictable.
  void CopyFast() {
    const size_t loadable = LoadableOffsets();
    if (loadable <= place_.offsets || dictionary_.size() < kCopyStep) {
      return;
    }
    const uint8_t* token = factors_.tokens.data() + place_.token_bytes;
    const uint8_t* const tokens_end =
        factors_.tokens.data() + factors_.tokens.size();
    const uint8_t* literal = factors_.literals.data() + place_.literals;
    const uint8_t* const literals_end =
        factors_.literals.data() + factors_.literals.size();
    uint8_t* to = out_.data() + done_;
    const uint8_t* const to_begin = to;
    const uint8_t* const to_end = out_.data() + out_.size();
    size_t index = place_.offsets;
    const size_t fetched = std::min(loadable, index + kPrefetchDistance);
    for (size_t i = index; i < fetched; ++i) {
      Prefetch(i);
    }
    while (token < tokens_end && index < loadable &&
           Fits(kCopyStep, to, to_end)) {
      Prefetch(std::min(index + kPrefetchDistance, loadable - 1));
      size_t length = *token;
      size_t token_size = 1;
      if (length >= 0x80) [[unlikely]] {
        if (tokens_end - token < 2 || token[1] - 1u >= 0x7F) {
          break;
        }
        length += (size_t{token[1]} - 1) << 7;
        token_size = 2;
      }
      bool is_run = false;
      if constexpr (kHasRuns) {
        if (!Fits(kCopyStep, literal, literals_end)) {
          break;
        }
        is_run = length < kRunTokens;
        length = length + 1 - (is_run ? 0 : kRunTokens);
      }
      const size_t offset = is_run ? 0 : LoadOffset(index);
      if (length == 0 || offset > dictionary_.size() - kCopyStep) {
        break;
      }
      const uint8_t* const from =
          (is_run ? literal : dictionary_.data()) + offset;
      if (length <= kCopyStep) {
        CopyStep(from, to);
      } else if (!CopyLong(from, length, to, to_end)) {
        break;
      }
      to += length;
      token += token_size;
      literal += is_run ? length : 0;
      index += is_run ? 0 : 1;
    }
    const auto text_size = static_cast<size_t>(to - to_begin);
    done_ += text_size;
    place_.text_size += text_size;
    place_.token_bytes = static_cast<size_t>(token - factors_.tokens.data());
    place_.literals = static_cast<size_t>(literal - factors_.literals.data());
    place_.offsets = index;
  }

  static bool Fits(size_t size, const uint8_t* at, const uint8_t* end) {
    return end - at >= static_cast<ptrdiff_t>(size);
  }

  // Copies a long factor in whole steps. Returns false and does nothing if
  // either side has no space for the last step.
  bool CopyLong(const uint8_t* from, size_t length, uint8_t* to,
                const uint8_t* to_end) const {
    const size_t copy_size = length + kCopyStep;
    if (!Fits(copy_size, to, to_end) ||
        !Fits(copy_size, from, dictionary_.data() + dictionary_.size())) {
      return false;
    }
    for (size_t done = 0; done < length; done += kCopyStep) {
      CopyStep(from + done, to + done);
    }
    return true;
  }

  // Copies the text of the next token, without its first `skip` bytes, with all
  // checks.
  absl::Status CopyOne(size_t skip) {
    const Token token = ReadToken(factors_.tokens.subspan(place_.token_bytes));
    if (token.size == 0) {
      return absl::DataLossError(
          absl::StrCat("ends after ", place_.text_size, " bytes of text"));
    }
    if (token.size > kTokenSizeBytesMax) {
      return MalformedToken();
    }
    const TokenSum sum = Kind::Of(token.value);
    if (place_.offsets + sum.offsets > factors_.offset_count) {
      return absl::DataLossError(absl::StrCat("has ", factors_.offset_count,
                                              " offsets and more factors"));
    }
    if (sum.literals > 0) {
      if (place_.literals + sum.literals > factors_.literal_count) {
        return TooFewLiterals();
      }
      CopyTo(factors_.literals.data() + place_.literals, sum.literals, skip);
      Advance(sum, token.size, place_);
      return absl::OkStatus();
    }
    const uint64_t offset = LoadOffsetCarefully(place_.offsets);
    if (!kHasRuns && token.value == 0) {
      if (offset > UINT8_MAX) {
        return absl::DataLossError(absl::StrCat("factor ", place_.offsets,
                                                " is the literal ", offset,
                                                ", which is no byte"));
      }
      const auto literal = static_cast<uint8_t>(offset);
      CopyTo(&literal, 1, skip);
    } else {
      if (sum.text_size > dictionary_.size() ||
          offset > dictionary_.size() - sum.text_size) {
        return absl::DataLossError(absl::StrCat(
            "factor ", place_.offsets, " is the ", sum.text_size, " bytes at ",
            offset, " of a dictionary of ", dictionary_.size(), " bytes"));
      }
      CopyTo(dictionary_.data() + offset, sum.text_size, skip);
    }
    Advance(sum, token.size, place_);
    return absl::OkStatus();
  }

  absl::Status TooFewLiterals() const {
    return absl::DataLossError(absl::StrCat("has ", factors_.literal_count,
                                            " literals, which are too few"));
  }

  void CopyTo(const uint8_t* from, size_t size, size_t skip) {
    const size_t copied = std::min(size - skip, out_.size() - done_);
    std::copy_n(from + skip, copied, out_.data() + done_);
    done_ += copied;
  }

  static constexpr bool kHasRuns = std::is_same_v<Kind, RunTokenSums>;

  const ByteView dictionary_;
  const FactorTokens& factors_;
  TokenPlace& place_;
  const MutableByteView out_;
  const unsigned bits_;
  const uint64_t mask_;
  size_t done_ = 0;
};

template <typename Kind>
absl::Status CopyOf(ByteView dictionary, const FactorTokens& factors,
                    size_t skip, TokenPlace& place, MutableByteView out) {
  switch (factors.offset_bits) {
    case 32:
      return Copier<Kind, 32>(dictionary, factors, place, out).Run(skip);
    case 24:
      return Copier<Kind, 24>(dictionary, factors, place, out).Run(skip);
    default:
      return Copier<Kind, 0>(dictionary, factors, place, out).Run(skip);
  }
}

}  // namespace

absl::StatusOr<bool> SkipTokens(TokenKind kind, ByteView tokens,
                                size_t text_position, TokenPlace& place) {
  return kind == TokenKind::kFactors
             ? SkipTokensOf<FactorTokenSums>(tokens, text_position, place)
             : SkipTokensOf<RunTokenSums>(tokens, text_position, place);
}

absl::Status CopyFactorText(ByteView dictionary, const FactorTokens& factors,
                            size_t skip, TokenPlace& place,
                            MutableByteView out) {
  return factors.kind == TokenKind::kFactors
             ? CopyOf<FactorTokenSums>(dictionary, factors, skip, place, out)
             : CopyOf<RunTokenSums>(dictionary, factors, skip, place, out);
}

absl::Status WrongTextSize(size_t found, size_t expected) {
  return absl::DataLossError(absl::StrCat(
      "gives ", found, " bytes of text where ", expected, " were expected"));
}

}  // namespace quire
