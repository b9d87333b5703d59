// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/paper/factor_tokens.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/base/varint.h"
#include "testing/base/guarded_bytes.h"
#include "testing/base/status_matchers.h"
#include "testing/codecs/codec_test_inputs.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

// Factors assembled from the format's description alone, with their text.
struct Made {
  TokenKind kind = TokenKind::kFactors;
  unsigned offset_bits = 32;
  std::string tokens = {};
  std::vector<uint32_t> offsets = {};
  std::string literals = {};
  std::string text = {};

  void AddFactor(const std::string& dictionary, uint32_t offset,
                 uint32_t length) {
    AppendVarint(kind == TokenKind::kFactors ? length : length + kRunTokens - 1,
                 tokens);
    offsets.push_back(offset);
    text += dictionary.substr(offset, length);
  }

  void AddLiterals(const std::string& run) {
    if (kind == TokenKind::kFactors) {
      for (const char literal : run) {
        AppendVarint(0, tokens);
        offsets.push_back(static_cast<uint8_t>(literal));
      }
    } else {
      AppendVarint(run.size() - 1, tokens);
      literals += run;
    }
    text += run;
  }

  std::string PackedOffsets() const {
    std::string packed((offsets.size() * offset_bits + 7) / 8, '\0');
    for (size_t i = 0; i < offsets.size(); ++i) {
      for (unsigned bit = 0; bit < offset_bits; ++bit) {
        const size_t at = i * offset_bits + bit;
        packed[at / 8] =
            static_cast<char>(static_cast<uint8_t>(packed[at / 8]) |
                              (offsets[i] >> bit & 1) << at % 8);
      }
    }
    return packed;
  }
};

// Decodes a range of `made`. All inputs end at a page that cannot be accessed.
absl::StatusOr<std::string> Decode(const std::string& dictionary,
                                   const Made& made, size_t begin,
                                   size_t size) {
  const std::string packed = made.PackedOffsets();
  const GuardedBytes offsets(AsBytes(packed));
  const GuardedBytes tokens(AsBytes(made.tokens));
  const GuardedBytes literals(AsBytes(made.literals));
  const GuardedBytes text(AsBytes(dictionary));
  const FactorTokens factors = {.kind = made.kind,
                                .tokens = tokens.bytes(),
                                .offsets = offsets.bytes(),
                                .offset_count = made.offsets.size(),
                                .offset_bits = made.offset_bits,
                                .literals = literals.bytes(),
                                .literal_count = literals.bytes().size()};
  TokenPlace place;
  const auto reached = SkipTokens(made.kind, tokens.bytes(), begin, place);
  if (!reached.ok()) {
    return reached.status();
  }
  if (!*reached) {
    return absl::OutOfRangeError("not reached");
  }
  const GuardedBytes out(size);
  const absl::Status status = CopyFactorText(
      text.bytes(), factors, begin - place.text_size, place, out.bytes());
  if (!status.ok()) {
    return status;
  }
  return std::string(AsText(out.bytes()));
}

const std::vector<unsigned>& Widths(TokenKind kind) {
  static const auto* const any =
      new std::vector<unsigned>{15, 16, 19, 21, 24, 31, 32};
  static const auto* const bytes = new std::vector<unsigned>{16, 24, 32};
  return kind == TokenKind::kFactors ? *any : *bytes;
}

TEST(FactorTokensTest, DecodesAnyRange) {
  const uint64_t seed = 5;
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  TestRandom random(seed);
  const std::string dictionary = RandomText(random, 30000);
  for (const TokenKind kind :
       {TokenKind::kFactors, TokenKind::kFactorsAndRuns}) {
    for (const unsigned bits : Widths(kind)) {
      Made made = {.kind = kind, .offset_bits = bits};
      for (int i = 0; i < 800; ++i) {
        // Few long factors; between them only usual ones.
        const size_t longest = i % 97 == 0 ? 20000 : i % 11 == 0 ? 300 : 60;
        const size_t length = 1 + RandomBelow(random, longest);
        made.AddFactor(
            dictionary,
            static_cast<uint32_t>(
                i % 50 == 0 ? dictionary.size() - length
                            : RandomBelow(random, dictionary.size() - length)),
            static_cast<uint32_t>(length));
        if (i % 3 == 0 && i % 200 < 100) {
          made.AddLiterals(
              RandomBytes(random, 1 + RandomBelow(random, kRunTokens)));
        }
      }
      SCOPED_TRACE(absl::StrCat(bits, " bits"));
      const size_t size = made.text.size();
      EXPECT_TRUE(Decode(dictionary, made, 0, size).value_or("") == made.text);
      for (int i = 0; i < 300; ++i) {
        const size_t begin = RandomBelow(random, size + 1);
        const size_t wanted = RandomBelow(
            random, std::min<size_t>(size - begin, i % 2 == 0 ? 90 : size) + 1);
        const auto range = Decode(dictionary, made, begin, wanted);
        ASSERT_THAT(range, IsOk());
        ASSERT_TRUE(*range == made.text.substr(begin, wanted))
            << begin << " " << wanted;
      }
      EXPECT_THAT(
          Decode(dictionary, made, size, 1),
          FailsWith(absl::StatusCode::kDataLoss, HasSubstr("ends after")));
      EXPECT_THAT(Decode(dictionary, made, size + 1, 0),
                  HasCode(absl::StatusCode::kOutOfRange));
    }
  }
}

TEST(FactorTokensTest, SkipsToWhatWasAskedForOnly) {
  for (const TokenKind kind :
       {TokenKind::kFactors, TokenKind::kFactorsAndRuns}) {
    Made made = {.kind = kind};
    const std::string dictionary(500, 'x');
    std::vector<TokenPlace> places = {{}};
    for (size_t i = 0; i < 200; ++i) {
      if (i % 3 == 0) {
        made.AddLiterals("?");
      } else {
        made.AddFactor(dictionary, 0,
                       i % 40 == 0 ? 300u : static_cast<uint32_t>(1 + i % 7));
      }
      places.push_back({.token_bytes = made.tokens.size(),
                        .offsets = made.offsets.size(),
                        .literals = made.literals.size(),
                        .text_size = made.text.size()});
    }
    for (size_t position = 0; position <= made.text.size(); ++position) {
      TokenPlace place;
      QUIRE_ASSERT_OK_AND_ASSIGN(
          const bool reached,
          SkipTokens(kind, AsBytes(made.tokens), position, place));
      EXPECT_TRUE(reached);
      const auto behind = std::ranges::upper_bound(places, position, {},
                                                   &TokenPlace::text_size);
      const TokenPlace& expected = *(behind - 1);
      ASSERT_EQ(place.token_bytes, expected.token_bytes) << position;
      ASSERT_EQ(place.offsets, expected.offsets);
      ASSERT_EQ(place.literals, expected.literals);
      ASSERT_EQ(place.text_size, expected.text_size);
    }
    // Truncated tokens are not reported as malformed.
    for (size_t size = 0; size < made.tokens.size(); ++size) {
      TokenPlace place;
      QUIRE_ASSERT_OK_AND_ASSIGN(
          const bool reached, SkipTokens(kind, AsBytes(made.tokens).first(size),
                                         made.text.size(), place));
      ASSERT_FALSE(reached);
      ASSERT_LE(place.token_bytes, size);
    }
  }
}

TEST(FactorTokensTest, RefusesWhatIsNotInTheDictionary) {
  const std::string dictionary(100, 'x');
  for (const TokenKind kind :
       {TokenKind::kFactors, TokenKind::kFactorsAndRuns}) {
    // At the front, where factors are decoded fast, and at the end.
    for (const int behind : {0, 60}) {
      for (const auto& [offset, length] :
           {std::pair<uint32_t, uint32_t>{0, 101},
            {100, 1},
            {99, 2},
            {36, 65},
            {UINT32_MAX, 1},
            {UINT32_MAX, 64},
            {1, 100}}) {
        Made made = {.kind = kind};
        AppendVarint(
            kind == TokenKind::kFactors ? length : length + kRunTokens - 1,
            made.tokens);
        made.offsets.push_back(offset);
        for (int i = 0; i < behind; ++i) {
          made.AddFactor(dictionary, 5, 20);
        }
        // The whole text: factors are decoded fast only far from its end.
        EXPECT_THAT(Decode(dictionary, made, 0,
                           length + static_cast<size_t>(behind) * 20),
                    FailsWith(absl::StatusCode::kDataLoss,
                              HasSubstr("of a dictionary of 100 bytes")));
      }
    }
  }
}

// Copies have wide steps, which read more than they need; near the dictionary's
// end they must not.
TEST(FactorTokensTest, ReadsTheDictionaryToItsLastByteAndNoFurther) {
  TestRandom random(9);
  const std::string dictionary = RandomText(random, 4096);
  for (const TokenKind kind :
       {TokenKind::kFactors, TokenKind::kFactorsAndRuns}) {
    for (uint32_t length = 1; length <= 130; ++length) {
      for (uint32_t left = 0; left <= 70; left += 1 + left / 40) {
        Made made = {.kind = kind};
        const auto end = static_cast<uint32_t>(dictionary.size());
        for (int i = 0; i < 12; ++i) {
          made.AddFactor(dictionary, i == 3 ? end - left - length : 7u,
                         i == 3 ? length : 40u);
        }
        const auto text = Decode(dictionary, made, 0, made.text.size());
        ASSERT_THAT(text, IsOk());
        ASSERT_EQ(*text, made.text) << length << " " << left;
      }
    }
  }
}

TEST(FactorTokensTest, RefusesWhatIsMissing) {
  const std::string dictionary(100, 'x');
  Made factors;
  AppendVarint(0, factors.tokens);
  factors.offsets = {256};
  EXPECT_THAT(Decode(dictionary, factors, 0, 1),
              FailsWith(absl::StatusCode::kDataLoss, HasSubstr("no byte")));
  factors.offsets = {};
  EXPECT_THAT(Decode(dictionary, factors, 0, 1),
              FailsWith(absl::StatusCode::kDataLoss, HasSubstr("0 offsets")));
  Made runs = {.kind = TokenKind::kFactorsAndRuns};
  AppendVarint(4, runs.tokens);
  runs.literals = "1234";
  EXPECT_THAT(Decode(dictionary, runs, 0, 5),
              FailsWith(absl::StatusCode::kDataLoss, HasSubstr("4 literals")));
  for (const absl::string_view bad : {absl::string_view("\x80\0", 2),
                                      absl::string_view("\xFF\xFF\xFF\x01")}) {
    factors.tokens = std::string(bad);
    EXPECT_THAT(Decode(dictionary, factors, 0, 1),
                FailsWith(absl::StatusCode::kDataLoss,
                          HasSubstr("variable-length integer")));
    // Among eight tokens and more.
    factors.tokens = "\x01\x01" + std::string(bad) + std::string(20, '\1');
    EXPECT_THAT(Decode(dictionary, factors, 10, 1),
                FailsWith(absl::StatusCode::kDataLoss,
                          HasSubstr("variable-length integer")));
  }
}

// Bytes after the valid literals may be read, but are no text; not even in the
// fast loop, which ends far before the last of them.
TEST(FactorTokensTest, RefusesLiteralsThatAreOnlyReadable) {
  const std::string dictionary(500, 'x');
  Made made = {.kind = TokenKind::kFactorsAndRuns};
  for (int i = 0; i < 60; ++i) {
    made.AddFactor(dictionary, 5, 20);
    if (i % 10 == 0 && i < 30) {
      made.AddLiterals("12345678");
    }
  }
  const std::string packed = made.PackedOffsets();
  const std::string literals = made.literals + std::string(32, '?');
  for (size_t good = 0; good <= made.literals.size(); ++good) {
    const FactorTokens factors = {.kind = made.kind,
                                  .tokens = AsBytes(made.tokens),
                                  .offsets = AsBytes(packed),
                                  .offset_count = made.offsets.size(),
                                  .offset_bits = made.offset_bits,
                                  .literals = AsBytes(literals),
                                  .literal_count = good};
    TokenPlace place;
    std::string out(made.text.size(), '?');
    const absl::Status status = CopyFactorText(AsBytes(dictionary), factors, 0,
                                               place, AsMutableBytes(out));
    if (good == made.literals.size()) {
      QUIRE_EXPECT_OK(status);
      EXPECT_EQ(out, made.text);
    } else {
      EXPECT_THAT(status, FailsWith(absl::StatusCode::kDataLoss,
                                    HasSubstr("literals, which are too few")))
          << good;
    }
  }
}

}  // namespace
}  // namespace quire
