// SPDX-License-Identifier: Apache-2.0
#include "codecs/fsst/training_matcher.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "codecs/base/endian.h"
#include "codecs/codec_test_inputs.h"

namespace quire {
namespace {

FsstSymbol SymbolOf(std::string text) {
  const auto size = static_cast<uint8_t>(text.size());
  text.resize(8);
  return {.bytes = LoadLittleEndian<uint64_t>(AsBytes(text).data()),
          .size = size};
}

uint64_t WordOf(const std::string& text) {
  return SymbolOf(text.substr(0, 8)).bytes;
}

TEST(TrainingMatcherTest, EscapesWhatHasNoSymbol) {
  TrainingMatcher matcher;
  for (const size_t byte : {size_t{0}, size_t{'a'}, size_t{255}}) {
    const auto match = matcher.Longest(byte, 1);
    EXPECT_EQ(match.code, TrainingMatcher::kEscapes + byte);
    EXPECT_EQ(match.size, 1u);
  }
}

TEST(TrainingMatcherTest, TakesTheLongestThatFits) {
  TrainingMatcher matcher;
  const std::vector<FsstSymbol> symbols = {SymbolOf("a"), SymbolOf("abc"),
                                           SymbolOf("ab"), SymbolOf("abcdefgh"),
                                           SymbolOf("abcde")};
  matcher.SetSymbols(symbols);
  const auto code = [&](const std::string& text, size_t left) {
    const auto match = matcher.Longest(WordOf(text), left);
    EXPECT_EQ(match.size, symbols[match.code].size);
    return match.code;
  };
  EXPECT_EQ(code("abcdefgh", 100), 3u);
  EXPECT_EQ(code("abcdefgh", 8), 3u);
  EXPECT_EQ(code("abcdefgh", 7), 4u);
  EXPECT_EQ(code("abcdefgh", 4), 1u);
  EXPECT_EQ(code("abcdefgh", 2), 2u);
  EXPECT_EQ(code("abcdefgh", 1), 0u);
  EXPECT_EQ(code("abcdefgx", 100), 4u);
  EXPECT_EQ(code("abxdefgh", 100), 2u);
}

TEST(TrainingMatcherTest, ForgetsTheSymbolsBefore) {
  TrainingMatcher matcher;
  matcher.SetSymbols(
      std::vector<FsstSymbol>{SymbolOf("a"), SymbolOf("ab"), SymbolOf("abc")});
  matcher.SetSymbols(std::vector<FsstSymbol>{SymbolOf("zzz")});
  EXPECT_EQ(matcher.Longest(WordOf("abcd"), 4).code,
            TrainingMatcher::kEscapes + 'a');
}

TEST(TrainingMatcherTest, AgreesWithASearchThroughAllSymbols) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    TestRandom random(seed);
    std::vector<FsstSymbol> symbols;
    while (symbols.size() < 255) {
      // Zero bytes, so that symbols resemble the padding of shorter ones.
      std::string text(1 + RandomBelow(random, 8), '\0');
      for (char& byte : text) {
        byte = static_cast<char>(RandomBelow(random, 4));
      }
      if (std::ranges::find(symbols, SymbolOf(text)) == symbols.end()) {
        symbols.push_back(SymbolOf(text));
      }
    }
    TrainingMatcher matcher;
    matcher.SetSymbols(symbols);
    for (int i = 0; i < 2000; ++i) {
      uint64_t word = 0;
      for (size_t j = 0; j < 8; ++j) {
        word |= uint64_t{RandomBelow(random, 4)} << (8 * j);
      }
      const size_t left = 1 + RandomBelow(random, 10);
      TrainingMatcher::Match expected = {
          static_cast<uint32_t>(TrainingMatcher::kEscapes + (word & 0xff)), 1};
      size_t size = 0;
      for (size_t code = 0; code < symbols.size(); ++code) {
        const FsstSymbol& symbol = symbols[code];
        if (symbol.size > size && symbol.size <= left &&
            FirstBytes(word, symbol.size) == symbol.bytes) {
          size = symbol.size;
          expected = {static_cast<uint32_t>(code), symbol.size};
        }
      }
      const auto match = matcher.Longest(word, left);
      EXPECT_EQ(match.code, expected.code);
      EXPECT_EQ(match.size, expected.size);
    }
  }
}

}  // namespace
}  // namespace quire
