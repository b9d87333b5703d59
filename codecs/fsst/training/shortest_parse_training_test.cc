// SPDX-License-Identifier: Apache-2.0
#include "codecs/fsst/training/shortest_parse_training.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "codecs/fsst/encode/fsst_optimal_parse.h"
#include "codecs/fsst/training/longest_match_training.h"
#include "testing/codecs/codec_test_inputs.h"

namespace quire {
namespace {

size_t ShortestSize(const TrainingSample& sample,
                    const std::vector<FsstSymbol>& symbols) {
  const FsstOptimalParse parse(SymbolTable::FromSymbols(symbols).value());
  std::vector<uint8_t> codes(2 * kFsstStringSizeMax);
  size_t size = 0;
  for (size_t i = 0; i < sample.piece_count(); ++i) {
    size += parse.Encode(sample.piece(i), codes.data());
  }
  return size;
}

TEST(ShortestParseTrainingTest, FindsNothingInNothing) {
  const TrainingSample sample({}, 100);
  EXPECT_TRUE(TrainForShortestParse(sample, {}, 10, 255).empty());
}

TEST(ShortestParseTrainingTest, NeedsNoSymbolsToStartWith) {
  const std::string text(2000, 'a');
  const std::vector<ByteView> texts = {AsBytes(text)};
  const TrainingSample sample(texts, text.size());
  const auto symbols = TrainForShortestParse(sample, {}, 5, 255);
  ASSERT_FALSE(symbols.empty());
  EXPECT_EQ(symbols[0].size, 8);
}

TEST(ShortestParseTrainingTest, BeatsTrainingForTheLongestMatch) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(seed);
    TestRandom random(seed);
    const std::string text = RandomText(random, 30000);
    const std::vector<ByteView> texts = {AsBytes(text)};
    const TrainingSample sample(texts, text.size());
    const auto before = TrainForLongestMatch(sample, 10, 255);
    const auto after = TrainForShortestParse(sample, before, 10, 255);
    EXPECT_LE(after.size(), 255u);
    // About 8 % shorter, and never longer.
    EXPECT_LT(ShortestSize(sample, after), ShortestSize(sample, before));
  }
}

TEST(ShortestParseTrainingTest, KeepsToTheNumberOfSymbols) {
  TestRandom random(1);
  const std::string text = RandomText(random, 20000);
  const std::vector<ByteView> texts = {AsBytes(text)};
  const TrainingSample sample(texts, text.size());
  for (size_t count = 1; count <= 255; count += 127) {
    EXPECT_EQ(TrainForShortestParse(sample, {}, 5, count).size(), count);
  }
}

}  // namespace
}  // namespace quire
