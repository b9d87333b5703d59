// SPDX-License-Identifier: Apache-2.0
#include "codecs/fsst/decode/fsst_decoder.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "testing/base/sanitized.h"
#include "testing/base/status_matchers.h"
#include "testing/codecs/fsst_test_vectors.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

// Memory of exactly the right size, for AddressSanitizer.
std::vector<uint8_t> Exactly(absl::string_view bytes) {
  return {bytes.begin(), bytes.end()};
}

// Section 3.1, written plainly. REQUIRES: the codes are right.
std::string PlainDecode(const SymbolTable& table, absl::string_view codes) {
  std::string text;
  for (size_t i = 0; i < codes.size(); ++i) {
    const auto code = static_cast<uint8_t>(codes[i]);
    if (code == kFsstEscape) {
      text.push_back(codes[++i]);
      continue;
    }
    for (size_t k = 0; k < table.symbol(code).size; ++k) {
      text.push_back(static_cast<char>(table.symbol(code).bytes >> (8 * k)));
    }
  }
  return text;
}

// `count` codes of the table, with an escape in `escape_period`.
std::string RandomCodes(TestRandom& random, const SymbolTable& table,
                        size_t count, size_t escape_period) {
  std::string codes;
  for (size_t i = 0; i < count; ++i) {
    if (table.symbol_count() == 0 || RandomBelow(random, escape_period) == 0) {
      codes.push_back(static_cast<char>(kFsstEscape));
      codes.push_back(static_cast<char>(RandomBelow(random, 256)));
    } else {
      codes.push_back(
          static_cast<char>(RandomBelow(random, table.symbol_count())));
    }
  }
  return codes;
}

SymbolTable SomeTable(TestRandom& random) {
  return RandomSymbolTable(random, RandomText(random, 3000),
                           RandomBelow(random, 256));
}

// Runs with each instruction set of this machine.
class FsstDecoderTest : public ::testing::TestWithParam<FsstInstructions> {};

INSTANTIATE_TEST_SUITE_P(Instructions, FsstDecoderTest,
                         ::testing::Values(FsstInstructions::kBest,
                                           FsstInstructions::kPlain,
                                           FsstInstructions::kPortable));

TEST_P(FsstDecoderTest, DecodesPublishedStrings) {
  for (const FsstTestVector& vector : FsstTestVectors()) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const SymbolTable table,
                               SymbolTable::Parse(AsBytes(vector.table)));
    const FsstDecoder decoder(table, GetParam());
    for (const FsstTestString& string : vector.strings) {
      const std::vector<uint8_t> codes = Exactly(string.codes);
      std::vector<uint8_t> out(string.text.size());
      QUIRE_ASSERT_OK_AND_ASSIGN(const size_t size, decoder.Decode(codes, out));
      EXPECT_EQ(size, out.size());
      EXPECT_EQ(AsText(out), string.text) << vector.name;
      QUIRE_EXPECT_OK(decoder.DecodeExactly(codes, out));
    }
  }
}

TEST_P(FsstDecoderTest, DecodesToExactRoomAndToMore) {
  for (uint64_t seed = 0; seed < Fewer(300u); ++seed) {
    SCOPED_TRACE(seed);
    TestRandom random(seed);
    const SymbolTable table = SomeTable(random);
    const FsstDecoder decoder(table, GetParam());
    const std::string codes = RandomCodes(
        random, table, RandomBelow(random, 300), 1 + RandomBelow(random, 100));
    const std::string text = PlainDecode(table, codes);
    EXPECT_EQ(decoder.DecodedSize(Exactly(codes)).value(), text.size());
    for (const size_t excess :
         std::initializer_list<size_t>{0, 1, 7, 8, 63, 64, 65, 1000}) {
      std::vector<uint8_t> out(text.size() + excess);
      QUIRE_ASSERT_OK_AND_ASSIGN(const size_t size,
                                 decoder.Decode(Exactly(codes), out));
      ASSERT_EQ(size, text.size());
      ASSERT_EQ(AsText(out).substr(0, size), text);
      EXPECT_EQ(decoder.DecodeExactly(Exactly(codes), out).ok(), excess == 0);
    }
  }
}

TEST_P(FsstDecoderTest, RefusesTextsThatDoNotFit) {
  TestRandom random(1);
  const SymbolTable table = SomeTable(random);
  const FsstDecoder decoder(table, GetParam());
  const std::string codes = RandomCodes(random, table, 200, 20);
  const size_t text_size = PlainDecode(table, codes).size();
  for (size_t space = 0; space < text_size; ++space) {
    std::vector<uint8_t> out(space);
    EXPECT_THAT(decoder.Decode(Exactly(codes), out),
                HasCode(absl::StatusCode::kOutOfRange));
    EXPECT_THAT(decoder.DecodeExactly(Exactly(codes), out),
                HasCode(absl::StatusCode::kDataLoss));
  }
}

TEST_P(FsstDecoderTest, RefusesUnknownCodesAnywhere) {
  const SymbolTable table = MakeSymbolTable({"a", "bcd", "efghijkl"});
  const FsstDecoder decoder(table, GetParam());
  TestRandom random(1);
  const std::string good = RandomCodes(random, table, 40, 10);
  const size_t text_size = PlainDecode(table, good).size();
  for (size_t i = 0; i < good.size(); ++i) {
    for (const int code : {3, 4, 254}) {
      std::string bad = good;
      // The byte after an escape is a literal.
      const bool is_literal =
          i > 0 && static_cast<uint8_t>(bad[i - 1]) == kFsstEscape;
      bad[i] = static_cast<char>(code);
      for (const size_t excess : std::initializer_list<size_t>{0, 200}) {
        std::vector<uint8_t> out(text_size + excess);
        const auto size = decoder.Decode(Exactly(bad), out);
        EXPECT_EQ(size.ok(), is_literal);
        EXPECT_EQ(decoder.DecodedSize(Exactly(bad)).ok(), is_literal);
        if (!size.ok() && excess > 0) {
          EXPECT_THAT(size, FailsWith(absl::StatusCode::kDataLoss,
                                      HasSubstr(std::to_string(code))));
        }
      }
    }
  }
}

TEST_P(FsstDecoderTest, RefusesAnEscapeAtTheEnd) {
  const SymbolTable table = MakeSymbolTable({"a"});
  const FsstDecoder decoder(table, GetParam());
  for (size_t count = 0; count < 40; ++count) {
    const std::string codes =
        std::string(count, '\0') + static_cast<char>(kFsstEscape);
    std::vector<uint8_t> out(200);
    EXPECT_THAT(decoder.Decode(Exactly(codes), out),
                FailsWith(absl::StatusCode::kDataLoss, HasSubstr("escape")));
    EXPECT_THAT(decoder.DecodedSize(Exactly(codes)),
                HasCode(absl::StatusCode::kDataLoss));
    // An escaped escape is fine.
    std::vector<uint8_t> exact(count + 1);
    QUIRE_EXPECT_OK(decoder.DecodeExactly(
        Exactly(codes + static_cast<char>(kFsstEscape)), exact));
    EXPECT_EQ(exact.back(), kFsstEscape);
  }
}

TEST_P(FsstDecoderTest, DecodesEveryRange) {
  for (uint64_t seed = 0; seed < Fewer(20u); ++seed) {
    SCOPED_TRACE(seed);
    TestRandom random(seed);
    const SymbolTable table = SomeTable(random);
    const FsstDecoder decoder(table, GetParam());
    const std::string codes = RandomCodes(random, table, 100, 10);
    const std::string text = PlainDecode(table, codes);
    for (size_t offset = 0; offset <= text.size(); ++offset) {
      for (const size_t wanted :
           std::initializer_list<size_t>{0, 1, 5, 64, 200, 10000}) {
        const size_t size = std::min(wanted, text.size() - offset);
        std::vector<uint8_t> out(size);
        QUIRE_ASSERT_OK(decoder.DecodeRange(Exactly(codes), offset, out));
        ASSERT_EQ(AsText(out), text.substr(offset, size));
      }
      std::vector<uint8_t> too_much(text.size() - offset + 1);
      EXPECT_THAT(decoder.DecodeRange(Exactly(codes), offset, too_much),
                  HasCode(absl::StatusCode::kOutOfRange));
    }
    EXPECT_THAT(decoder.DecodeRange(Exactly(codes), text.size() + 1, {}),
                HasCode(absl::StatusCode::kOutOfRange));
  }
}

TEST_P(FsstDecoderTest, FindsThePlaceOfEveryByte) {
  for (uint64_t seed = 0; seed < Fewer(15u); ++seed) {
    SCOPED_TRACE(seed);
    TestRandom random(seed);
    const SymbolTable table = SomeTable(random);
    const FsstDecoder decoder(table, GetParam());
    const std::string codes = RandomCodes(random, table, 200, 15);
    const std::string text = PlainDecode(table, codes);
    for (size_t offset = 0; offset <= text.size(); ++offset) {
      QUIRE_ASSERT_OK_AND_ASSIGN(const FsstDecoder::CodePosition position,
                                 decoder.Find(Exactly(codes), offset));
      ASSERT_LE(position.decoded_offset, offset);
      ASSERT_LT(offset - position.decoded_offset, kFsstSymbolSizeMax);
      ASSERT_EQ(PlainDecode(table, codes.substr(0, position.code_offset)),
                text.substr(0, position.decoded_offset));
    }
    EXPECT_THAT(decoder.Find(Exactly(codes), text.size() + 1),
                HasCode(absl::StatusCode::kOutOfRange));
  }
}

TEST_P(FsstDecoderTest, DoesNotLookBehindARange) {
  const FsstDecoder decoder(MakeSymbolTable({"abc"}), GetParam());
  std::string codes(100, '\0');
  codes.back() = 7;
  std::vector<uint8_t> out(297);
  QUIRE_EXPECT_OK(decoder.DecodeRange(Exactly(codes), 0, out));
  QUIRE_EXPECT_OK(decoder.DecodeRange(Exactly(codes), 297, {}));
  QUIRE_EXPECT_OK(decoder.Find(Exactly(codes), 297));
  EXPECT_THAT(decoder.DecodeRange(Exactly(codes), 298, {}),
              HasCode(absl::StatusCode::kDataLoss));
}

TEST_P(FsstDecoderTest, DecodesManyStrings) {
  for (uint64_t seed = 0; seed < Fewer(150u); ++seed) {
    SCOPED_TRACE(seed);
    TestRandom random(seed);
    const SymbolTable table = SomeTable(random);
    const FsstDecoder decoder(table, GetParam());
    std::string codes;
    std::string text;
    std::vector<uint32_t> code_ends;
    std::vector<uint32_t> expected_ends;
    const size_t code_count =
        1 + RandomBelow(random, seed % 10 == 0 ? 400 : 40);
    const size_t string_count = RandomBelow(random, 90);
    for (size_t i = 0; i < string_count; ++i) {
      const std::string string =
          RandomCodes(random, table, RandomBelow(random, code_count),
                      1 + RandomBelow(random, 50));
      codes += string;
      text += PlainDecode(table, string);
      code_ends.push_back(static_cast<uint32_t>(codes.size()));
      expected_ends.push_back(static_cast<uint32_t>(text.size()));
    }
    std::vector<uint32_t> out_ends(string_count);
    for (const size_t excess : std::initializer_list<size_t>{0, 10, 100}) {
      std::vector<uint8_t> out(text.size() + excess);
      QUIRE_ASSERT_OK(
          decoder.DecodeStrings(Exactly(codes), code_ends, out, out_ends));
      EXPECT_EQ(out_ends, expected_ends);
      EXPECT_EQ(AsText(out).substr(0, text.size()), text);
    }
    if (!text.empty()) {
      std::vector<uint8_t> out(text.size() - 1);
      EXPECT_THAT(
          decoder.DecodeStrings(Exactly(codes), code_ends, out, out_ends),
          HasCode(absl::StatusCode::kOutOfRange));
    }
  }
}

// Cuts at any offset, also within escapes, over more codes than one step of the
// loops decodes.
TEST(FsstDecoderInstructionsTest, AgreeAboutStringsCutAnywhere) {
  for (uint64_t seed = 0; seed < Fewer(60u); ++seed) {
    SCOPED_TRACE(seed);
    TestRandom random(seed);
    const SymbolTable table = SomeTable(random);
    const std::vector<uint8_t> codes =
        Exactly(RandomCodes(random, table, 10000, seed % 3 == 0 ? 2 : 2000));
    std::vector<uint32_t> code_ends;
    for (size_t end = 0; end < codes.size();
         end += RandomBelow(random, seed % 4 == 0 ? 3000 : 30)) {
      // Sometimes cut within an escape.
      if (end == 0 || codes[end - 1] != kFsstEscape ||
          RandomBelow(random, 100) == 0) {
        code_ends.push_back(static_cast<uint32_t>(end));
      }
    }
    std::vector<uint8_t> best(codes.size() * kFsstExpansionMax);
    std::vector<uint32_t> best_ends(code_ends.size());
    const absl::Status status =
        FsstDecoder(table).DecodeStrings(codes, code_ends, best, best_ends);
    const bool has_text = status.ok() && !code_ends.empty();
    if (has_text) {
      EXPECT_EQ(
          AsText(ByteView(best).first(best_ends.back())),
          PlainDecode(table, AsText(ByteView(codes).first(code_ends.back()))));
    }
    for (const FsstInstructions instructions :
         {FsstInstructions::kPlain, FsstInstructions::kPortable}) {
      std::vector<uint8_t> other(best.size());
      std::vector<uint32_t> other_ends(code_ends.size());
      EXPECT_EQ(FsstDecoder(table, instructions)
                    .DecodeStrings(codes, code_ends, other, other_ends),
                status);
      if (has_text) {
        EXPECT_EQ(other_ends, best_ends);
        EXPECT_EQ(AsText(ByteView(other).first(best_ends.back())),
                  AsText(ByteView(best).first(best_ends.back())));
      }
    }
  }
}

TEST_P(FsstDecoderTest, RefusesBadStringsAndEnds) {
  const FsstDecoder decoder(MakeSymbolTable({"abc"}), GetParam());
  const auto decode = [&](const std::string& codes,
                          const std::vector<uint32_t>& code_ends) {
    std::vector<uint8_t> out(1000);
    std::vector<uint32_t> out_ends(code_ends.size());
    return decoder.DecodeStrings(Exactly(codes), code_ends, out, out_ends);
  };
  const std::string codes(40, '\0');
  QUIRE_EXPECT_OK(decode(codes, {}));
  QUIRE_EXPECT_OK(decode(codes, {0, 0, 10, 10, 39}));
  EXPECT_THAT(decode(codes, {10, 9, 40}), HasCode(absl::StatusCode::kDataLoss));
  EXPECT_THAT(decode(codes, {10, 41}), HasCode(absl::StatusCode::kDataLoss));
  // An escape may not take its byte from the next string.
  std::string escape = codes;
  escape[9] = static_cast<char>(kFsstEscape);
  EXPECT_THAT(decode(escape, {10, 40}), HasCode(absl::StatusCode::kDataLoss));
  QUIRE_EXPECT_OK(decode(escape, {11, 40}));
  std::string unknown = codes;
  unknown[20] = 1;
  EXPECT_THAT(decode(unknown, {10, 40}), HasCode(absl::StatusCode::kDataLoss));
  QUIRE_EXPECT_OK(decode(unknown, {10, 20}));
}

}  // namespace
}  // namespace quire
