// SPDX-License-Identifier: Apache-2.0
#include "codecs/fsst/table/symbol_matcher.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

#include "codecs/base/endian.h"
#include "testing/codecs/codec_test_inputs.h"

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

TEST(SymbolMatcherTest, SaysWhereThereIsNone) {
  SymbolMatcher matcher;
  for (const size_t byte : {size_t{0}, size_t{'a'}, size_t{255}}) {
    const auto match = matcher.Longest(byte, 1);
    EXPECT_EQ(match.index, SymbolMatcher::kNone);
    EXPECT_EQ(match.size, 1u);
  }
}

TEST(SymbolMatcherTest, TakesTheLongestThatFits) {
  SymbolMatcher matcher;
  const std::vector<FsstSymbol> symbols = {SymbolOf("a"), SymbolOf("abc"),
                                           SymbolOf("ab"), SymbolOf("abcdefgh"),
                                           SymbolOf("abcde")};
  matcher.SetSymbols(symbols);
  const auto index = [&](const std::string& text, size_t left) {
    const auto match = matcher.Longest(WordOf(text), left);
    EXPECT_EQ(match.size, symbols[match.index].size);
    return match.index;
  };
  EXPECT_EQ(index("abcdefgh", 100), 3u);
  EXPECT_EQ(index("abcdefgh", 8), 3u);
  EXPECT_EQ(index("abcdefgh", 7), 4u);
  EXPECT_EQ(index("abcdefgh", 4), 1u);
  EXPECT_EQ(index("abcdefgh", 2), 2u);
  EXPECT_EQ(index("abcdefgh", 1), 0u);
  EXPECT_EQ(index("abcdefgx", 100), 4u);
  EXPECT_EQ(index("abxdefgh", 100), 2u);
}

TEST(SymbolMatcherTest, ForgetsTheSymbolsBefore) {
  SymbolMatcher matcher;
  matcher.SetSymbols(
      std::vector<FsstSymbol>{SymbolOf("a"), SymbolOf("ab"), SymbolOf("abc")});
  matcher.SetSymbols(std::vector<FsstSymbol>{SymbolOf("zzz")});
  EXPECT_EQ(matcher.Longest(WordOf("abcd"), 4).index, SymbolMatcher::kNone);
}

TEST(SymbolMatcherTest, AgreesWithASearchThroughAllSymbols) {
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
    SymbolMatcher matcher;
    matcher.SetSymbols(symbols);
    for (int i = 0; i < 2000; ++i) {
      uint64_t word = 0;
      for (size_t j = 0; j < 8; ++j) {
        word |= uint64_t{RandomBelow(random, 4)} << (8 * j);
      }
      const size_t left = 1 + RandomBelow(random, 10);
      std::vector<std::pair<size_t, size_t>> expected;  // size and index
      for (size_t k = 0; k < symbols.size(); ++k) {
        const FsstSymbol& symbol = symbols[k];
        if (symbol.size <= left &&
            FirstBytes(word, symbol.size) == symbol.bytes) {
          expected.emplace_back(symbol.size, k);
        }
      }
      std::ranges::sort(expected, std::greater());
      std::vector<std::pair<size_t, size_t>> all;
      matcher.ForEach(word, left, [&](uint16_t index, size_t size) {
        all.emplace_back(size, index);
      });
      EXPECT_EQ(all, expected);
      const auto longest = matcher.Longest(word, left);
      EXPECT_EQ(longest.size, expected.empty() ? 1 : expected[0].first);
      EXPECT_EQ(longest.index,
                expected.empty() ? SymbolMatcher::kNone : expected[0].second);
    }
  }
}

}  // namespace
}  // namespace quire
