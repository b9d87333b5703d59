// SPDX-License-Identifier: Apache-2.0
#include "codecs/fsst/training/longest_match_training.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "testing/codecs/codec_test_inputs.h"

namespace quire {
namespace {

std::vector<std::string> TrainByMatch(const std::string& text, int rounds,
                                      size_t symbol_count_max) {
  const std::vector<ByteView> texts = {AsBytes(text)};
  const TrainingSample sample(texts, text.size());
  std::vector<std::string> symbols;
  for (const FsstSymbol& symbol :
       TrainForLongestMatch(sample, rounds, symbol_count_max)) {
    std::string bytes;
    for (size_t i = 0; i < symbol.size; ++i) {
      bytes += static_cast<char>(symbol.bytes >> (8 * i) & 0xff);
    }
    symbols.push_back(bytes);
  }
  return symbols;
}

TEST(LongestMatchTrainingTest, FindsNothingInNothing) {
  EXPECT_TRUE(TrainByMatch("", 10, 255).empty());
}

TEST(LongestMatchTrainingTest, OneRoundFindsSymbolsOfTwoBytesAtMost) {
  const auto symbols = TrainByMatch(std::string(1000, 'a') + "bcbcbc", 1, 255);
  EXPECT_TRUE(std::ranges::all_of(
      symbols, [](const std::string& symbol) { return symbol.size() <= 2; }));
  EXPECT_NE(std::ranges::find(symbols, "aa"), symbols.end());
}

TEST(LongestMatchTrainingTest, FourRoundsFindSymbolsOfEightBytes) {
  std::string text;
  while (text.size() < 20000) {
    text += "http://w";
  }
  const auto symbols = TrainByMatch(text, 4, 255);
  EXPECT_NE(std::ranges::find_if(
                symbols,
                [](const std::string& symbol) { return symbol.size() == 8; }),
            symbols.end());
}

TEST(LongestMatchTrainingTest, KeepsToTheNumberOfSymbols) {
  TestRandom random(1);
  const std::string text = RandomText(random, 50000);
  for (size_t count = 1; count <= 255; count += 127) {
    const auto symbols = TrainByMatch(text, 10, count);
    EXPECT_EQ(symbols.size(), count);
    auto sorted = symbols;
    std::ranges::sort(sorted);
    EXPECT_EQ(std::unique(sorted.begin(), sorted.end()), sorted.end());
  }
}

TEST(LongestMatchTrainingTest, TheMostValuableComesFirst) {
  std::string text;
  for (int i = 0; i < 500; ++i) {
    text += "abcdefgh";
    text += static_cast<char>(i % 64);
  }
  EXPECT_EQ(TrainByMatch(text, 10, 255)[0], "abcdefgh");
}

}  // namespace
}  // namespace quire
