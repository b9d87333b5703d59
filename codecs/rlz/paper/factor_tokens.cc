// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/paper/factor_tokens.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <type_traits>

#include "absl/strings/str_cat.h"

#include "codecs/base/endian.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

constexpr uint64_t kOnes = 0x0101010101010101;
constexpr uint64_t kHighBits = 0x80 * kOnes;

// How far ahead, in offsets, the dictionary is fetched into the cache: about
// the time that one access to memory takes.
constexpr size_t kPrefetchDistance = 20;
// Copies of up to this size are made without a loop.
constexpr size_t kShortCopy = 64;
constexpr size_t kHalfCopy = 32;
static_assert(kRunTokens <= kHalfCopy);
// What an offset is loaded with.
constexpr size_t kLoadSize = sizeof(uint64_t);

// The sum of eight bytes, each below 0xFF.
uint64_t SumOfBytes(uint64_t bytes) {
  constexpr uint64_t kEven = 0x00FF00FF00FF00FF;
  const uint64_t pairs = (bytes & kEven) + (bytes >> 8 & kEven);
  return (pairs * 0x0001000100010001) >> 48;
}

// What one token, or eight, stand for.
struct TokenSum {
  size_t text_size;
  size_t offsets;
  size_t literals;
};

struct Factors {
  static TokenSum Of(uint32_t token) {
    return {
        .text_size = std::max<uint32_t>(token, 1), .offsets = 1, .literals = 0};
  }

  // REQUIRES: all eight are below 0x80.
  static TokenSum OfEight(uint64_t tokens) {
    const uint64_t not_zero = (tokens + 0x7F * kOnes) & kHighBits;
    return {.text_size = SumOfBytes(tokens + ((not_zero ^ kHighBits) >> 7)),
            .offsets = 8,
            .literals = 0};
  }
};

struct FactorsAndRuns {
  static TokenSum Of(uint32_t token) {
    if (token < kRunTokens) {
      return {.text_size = token + 1, .offsets = 0, .literals = token + 1};
    }
    return {.text_size = token - kRunTokens + 1, .offsets = 1, .literals = 0};
  }

  static TokenSum OfEight(uint64_t tokens) {
    const uint64_t is_factor =
        ((tokens + (0x80 - kRunTokens) * kOnes) & kHighBits) >> 7;
    const uint64_t offsets = SumOfBytes(is_factor);
    const uint64_t runs = tokens & ~(is_factor * 0xFF);
    return {.text_size = SumOfBytes(tokens) + 8 - kRunTokens * offsets,
            .offsets = offsets,
            .literals = SumOfBytes(runs) + 8 - offsets};
  }
};

void Advance(const TokenSum& sum, size_t token_bytes, TokenPlace& place) {
  place.token_bytes += token_bytes;
  place.offsets += sum.offsets;
  place.literals += sum.literals;
  place.text_size += sum.text_size;
}

// A varint in its shortest form of at most kTokenSizeBytesMax bytes. `size` is
// 0 if `bytes` ends inside it, and larger than allowed if it is malformed.
struct Token {
  uint32_t value = 0;
  size_t size = 0;
};

Token ReadToken(ByteView bytes) {
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

absl::Status MalformedToken() {
  return absl::DataLossError("malformed variable-length integer");
}

template <typename Kind>
absl::StatusOr<bool> SkipTokensOf(ByteView tokens, size_t text_position,
                                  TokenPlace& place) {
  assert(place.text_size <= text_position);
  while (tokens.size() - place.token_bytes >= sizeof(uint64_t)) {
    const auto eight =
        LoadLittleEndian<uint64_t>(tokens.data() + place.token_bytes);
    if ((eight & kHighBits) != 0) {
      // One by one, up to the long one among them.
      const Token token = ReadToken(tokens.subspan(place.token_bytes));
      if (token.size > kTokenSizeBytesMax) {
        return MalformedToken();
      }
      const TokenSum sum = Kind::Of(token.value);
      if (sum.text_size > text_position - place.text_size) {
        return true;
      }
      Advance(sum, token.size, place);
      continue;
    }
    const TokenSum sum = Kind::OfEight(eight);
    if (sum.text_size > text_position - place.text_size) {
      break;
    }
    Advance(sum, sizeof(uint64_t), place);
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

inline void CopyHalf(const uint8_t* from, uint8_t* to) {
  std::memcpy(to, from, kHalfCopy / 2);
  std::memcpy(to + kHalfCopy / 2, from + kHalfCopy / 2, kHalfCopy / 2);
}

// kBits is how wide offsets are, or 0 if that is known at run time only.
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
      CopyShort();
      // Not looked at for each run: until here it is what is readable that
      // counts, which may be more.
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
  // REQUIRES: kLoadSize bytes are there.
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

  // How many of the offsets can be loaded as LoadOffset() does it.
  size_t LoadableOffsets() const {
    if (factors_.offsets.size() < kLoadSize) {
      return 0;
    }
    return std::min(factors_.offset_count,
                    (factors_.offsets.size() - kLoadSize) * 8 / bits_ + 1);
  }

  // Copies while tokens are of the usual kind: one byte, not much text, and not
  // at the end of anything. Without a check for each end there is.
  void CopyShort() {
    const size_t loadable = LoadableOffsets();
    if (loadable <= place_.offsets + kPrefetchDistance ||
        dictionary_.size() < kShortCopy || out_.size() - done_ < kShortCopy) {
      return;
    }
    const size_t index_end = loadable - kPrefetchDistance;
    const size_t offset_max = dictionary_.size() - kShortCopy;
    const uint8_t* const dictionary = dictionary_.data();
    const uint8_t* const to_last = out_.data() + (out_.size() - kShortCopy);
    const uint8_t* token = factors_.tokens.data() + place_.token_bytes;
    const uint8_t* const tokens_end =
        factors_.tokens.data() + factors_.tokens.size();
    const uint8_t* literal = factors_.literals.data() + place_.literals;
    const uint8_t* const literals_end =
        factors_.literals.data() + factors_.literals.size();
    uint8_t* to = out_.data() + done_;
    const uint8_t* const to_begin = to;
    size_t index = place_.offsets;
    while (token < tokens_end && index < index_end && to <= to_last) {
      uint32_t length = *token;
      if constexpr (kHasRuns) {
        if (length < kRunTokens) {
          if (literals_end - literal < static_cast<ptrdiff_t>(kRunTokens)) {
            break;
          }
          std::memcpy(to, literal, kRunTokens);
          literal += length + 1;
          to += length + 1;
          ++token;
          continue;
        }
        length -= kRunTokens - 1;
      }
      // Unchecked: a prefetch of any address is harmless.
      __builtin_prefetch(reinterpret_cast<const void*>(
          reinterpret_cast<uintptr_t>(dictionary) +
          LoadOffset(index + kPrefetchDistance)));
      const uint64_t offset = LoadOffset(index);
      if (length - 1 >= kShortCopy || *token >= 0x80 || offset > offset_max) {
        break;
      }
      CopyHalf(dictionary + offset, to);
      if (length > kHalfCopy) {
        CopyHalf(dictionary + offset + kHalfCopy, to + kHalfCopy);
      }
      to += length;
      ++token;
      ++index;
    }
    const auto text_size = static_cast<size_t>(to - to_begin);
    done_ += text_size;
    place_.text_size += text_size;
    place_.token_bytes = static_cast<size_t>(token - factors_.tokens.data());
    place_.literals = static_cast<size_t>(literal - factors_.literals.data());
    place_.offsets = index;
  }

  // Copies what the next token stands for, but for the first `skip` bytes, with
  // all checks.
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

  static constexpr bool kHasRuns = std::is_same_v<Kind, FactorsAndRuns>;

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
             ? SkipTokensOf<Factors>(tokens, text_position, place)
             : SkipTokensOf<FactorsAndRuns>(tokens, text_position, place);
}

absl::Status CopyFactorText(ByteView dictionary, const FactorTokens& factors,
                            size_t skip, TokenPlace& place,
                            MutableByteView out) {
  return factors.kind == TokenKind::kFactors
             ? CopyOf<Factors>(dictionary, factors, skip, place, out)
             : CopyOf<FactorsAndRuns>(dictionary, factors, skip, place, out);
}

absl::Status WrongTextSize(size_t found, size_t expected) {
  return absl::DataLossError(absl::StrCat(
      "gives ", found, " bytes of text where ", expected, " were expected"));
}

}  // namespace quire
