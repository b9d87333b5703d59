// SPDX-License-Identifier: Apache-2.0
#include "codecs/fsst/encode/fsst_optimal_parse.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "codecs/base/endian.h"
#include "codecs/fsst/decode/fsst_decoder.h"
#include "codecs/fsst/encode/fsst_encoder.h"
#include "testing/codecs/codec_test_inputs.h"

namespace quire {
namespace {

FsstSymbol SymbolOf(std::string text) {
  const auto size = static_cast<uint8_t>(text.size());
  text.resize(8);
  return {.bytes = LoadLittleEndian<uint64_t>(AsBytes(text).data()),
          .size = size};
}

SymbolTable TableOf(const std::vector<std::string>& texts) {
  std::vector<FsstSymbol> symbols;
  for (const std::string& text : texts) {
    symbols.push_back(SymbolOf(text));
  }
  return SymbolTable::FromSymbols(symbols).value();
}

std::string EncodeOptimally(const SymbolTable& table, const std::string& text,
                            FsstLevel level = FsstLevel::kHigh) {
  std::vector<uint8_t> codes(FsstEncoder::CodesSizeMax(text.size()));
  codes.resize(FsstEncoder(table, level).Encode(AsBytes(text), codes));
  std::string decoded(text.size(), '\0');
  EXPECT_TRUE(
      FsstDecoder(table).DecodeExactly(codes, AsMutableBytes(decoded)).ok());
  EXPECT_EQ(decoded, text);
  return std::string(AsText(codes));
}

std::string Word(TestRandom& random, size_t size_max, size_t alphabet) {
  std::string word(1 + RandomBelow(random, size_max), '\0');
  for (char& byte : word) {
    byte = static_cast<char>('a' + RandomBelow(random, alphabet));
  }
  return word;
}

// Fewest bytes of codes for text.substr(from), by exhaustive search.
size_t SmallestSize(const std::vector<std::string>& symbols,
                    const std::string& text, size_t from = 0) {
  if (from == text.size()) {
    return 0;
  }
  size_t size = 2 + SmallestSize(symbols, text, from + 1);
  for (const std::string& symbol : symbols) {
    if (text.compare(from, symbol.size(), symbol) == 0) {
      size =
          std::min(size, 1 + SmallestSize(symbols, text, from + symbol.size()));
    }
  }
  return size;
}

TEST(FsstOptimalParseTest, PassesOverALongSymbolForABetterOne) {
  // Longest match would take "abc", then escape five bytes.
  const SymbolTable table = TableOf({"abc", "ab", "cdefgh"});
  EXPECT_EQ(EncodeOptimally(table, "abcdefgh").size(), 2u);
  EXPECT_EQ(EncodeOptimally(table, "abcdefgh", FsstLevel::kDefault).size(),
            11u);
}

TEST(FsstOptimalParseTest, OfTheShortestTakesTheLongestSymbolFirst) {
  // Codes: bc 0, ab 1, abc 2, a 3, c 4.
  const SymbolTable table = TableOf({"ab", "bc", "abc", "a", "c"});
  EXPECT_EQ(EncodeOptimally(table, "abcc"), "\x02\x04");
  EXPECT_EQ(EncodeOptimally(table, "abcbc"), std::string("\x02\x00", 2));
  // "ab" "c" is as short as "a" "bc".
  EXPECT_EQ(EncodeOptimally(TableOf({"ab", "bc", "a", "c"}), "abc"),
            std::string("\x00\x03", 2));
}

TEST(FsstOptimalParseTest, PrefersASymbolToAnEscape) {
  // x as an escape and "yz", or "xy" and z as an escape: three bytes both.
  const SymbolTable table = TableOf({"xy", "yz"});
  EXPECT_EQ(EncodeOptimally(table, "xyz"), std::string("\x00\xff", 2) + "z");
}

TEST(FsstOptimalParseTest, EncodesNothingAndTheUnknown) {
  EXPECT_EQ(EncodeOptimally(SymbolTable(), ""), "");
  EXPECT_EQ(EncodeOptimally(SymbolTable(), "ab"),
            "\xff"
            "a"
            "\xff"
            "b");
}

TEST(FsstOptimalParseTest, TakesNoSymbolOverTheEnd) {
  const std::string zeros(3, '\0');
  const SymbolTable table = TableOf({std::string(8, '\0'), zeros});
  EXPECT_EQ(EncodeOptimally(table, zeros).size(), 1u);
  EXPECT_EQ(EncodeOptimally(table, std::string(7, '\0')).size(), 4u);
}

TEST(FsstOptimalParseTest, NoCodesAreShorter) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    TestRandom random(seed);
    std::vector<std::string> symbols;
    for (int i = 0; i < 12; ++i) {
      const std::string word = Word(random, 8, 2);
      if (std::ranges::find(symbols, word) == symbols.end()) {
        symbols.push_back(word);
      }
    }
    const std::string text = Word(random, 16, 3);
    EXPECT_EQ(EncodeOptimally(TableOf(symbols), text).size(),
              SmallestSize(symbols, text));
  }
}

TEST(FsstOptimalParseTest, IsNeverLongerThanTheDefaultLevel) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    TestRandom random(seed);
    std::vector<std::string> symbols;
    for (int i = 0; i < 200; ++i) {
      const std::string word = Word(random, 8, 5);
      if (std::ranges::find(symbols, word) == symbols.end()) {
        symbols.push_back(word);
      }
    }
    const SymbolTable table = TableOf(symbols);
    const std::string text = Word(random, 5000, 6);
    EXPECT_LE(EncodeOptimally(table, text).size(),
              EncodeOptimally(table, text, FsstLevel::kDefault).size());
  }
}

// Pieces are cut where the default level cuts them: equal bytes get equal codes
// whatever their neighbours.
TEST(FsstOptimalParseTest, LongTextsAreTheirPiecesOneAfterTheOther) {
  TestRandom random(1);
  const std::string text = Word(random, 4000, 3) + std::string(2000, 'a');
  const SymbolTable table = TableOf({"aaaaaaaa", "ab", "ba", "bab", "c"});
  std::string codes;
  for (size_t at = 0; at < text.size(); at += kFsstStringSizeMax) {
    codes += EncodeOptimally(table, text.substr(at, kFsstStringSizeMax));
  }
  EXPECT_EQ(EncodeOptimally(table, text), codes);
}

}  // namespace
}  // namespace quire
