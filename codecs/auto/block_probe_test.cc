// SPDX-License-Identifier: Apache-2.0
#include "codecs/auto/block_probe.h"

#include <cmath>
#include <cstring>
#include <string>

#include "gtest/gtest.h"

#include "testing/codecs/codec_test_inputs.h"

namespace quire {
namespace {

constexpr size_t kProbedSize = 64 << 10;

template <typename Number>
std::string Wave() {
  std::string text;
  for (size_t i = 0; text.size() < kProbedSize; ++i) {
    const auto value = static_cast<Number>(
        1000 * std::sin(static_cast<double>(i) / 500) + 2000);
    char bytes[sizeof(value)];
    std::memcpy(bytes, &value, sizeof(value));
    text.append(bytes, sizeof(value));
  }
  return text;
}

TEST(ByteEntropyTest, IsThatOfTheBytes) {
  EXPECT_EQ(MeasureEntropy(AsBytes("a")).plain, 0u);
  EXPECT_EQ(MeasureEntropy(AsBytes(std::string(kProbedSize, 'a'))).plain, 0u);
  std::string text;
  while (text.size() < kProbedSize) {
    text += "abcd";
  }
  // Exact except for the rounding of the logarithms.
  EXPECT_NEAR(MeasureEntropy(AsBytes(text)).plain, 2000, 1);
  EXPECT_EQ(MeasureEntropy(AsBytes(text)).as_numbers, 0u);
  TestRandom random(1);
  const ByteEntropy uniform =
      MeasureEntropy(AsBytes(RandomBytes(random, kProbedSize)));
  EXPECT_GT(uniform.plain, 7980u);
  EXPECT_LE(uniform.plain, 8000u);
  EXPECT_GT(uniform.as_numbers, 7800u);
}

TEST(ByteEntropyTest, SeesNumbersOfEveryWidth) {
  for (const std::string& text :
       {Wave<int16_t>(), Wave<float>(), Wave<double>()}) {
    const ByteEntropy entropy = MeasureEntropy(AsBytes(text));
    EXPECT_LT(entropy.as_numbers + 500, entropy.plain);
  }
  TestRandom random(1);
  const ByteEntropy words =
      MeasureEntropy(AsBytes(RandomText(random, kProbedSize)));
  EXPECT_GT(words.as_numbers + 100, words.plain);
}

TEST(ByteEntropyTest, TakesBlocksOfAnySize) {
  TestRandom random(1);
  for (size_t size = 1; size < 70'000; size += 1 + size / 7) {
    const ByteEntropy entropy =
        MeasureEntropy(AsBytes(RandomBytes(random, size)));
    EXPECT_LE(entropy.plain, 8000u);
    EXPECT_LE(entropy.as_numbers, 8000u);
  }
}

TEST(DictionaryFilterTest, FindsWhatIsCommonAndLittleElse) {
  TestRandom random(1);
  const std::string dictionary = RandomBytes(random, 1 << 20);
  const DictionaryFilter filter(AsBytes(dictionary));
  EXPECT_LE(filter.MemoryBytes(), dictionary.size() / 2 + 8);
  EXPECT_GT(filter.SharePerMille(AsBytes(dictionary).first(kProbedSize)), 950u);
  EXPECT_LT(filter.SharePerMille(AsBytes(RandomBytes(random, kProbedSize))),
            20u);
  // Half of it, at odd offsets.
  std::string half;
  while (half.size() < kProbedSize) {
    half += RandomBytes(random, 333) +
            dictionary.substr(RandomBelow(random, 1 << 19), 333);
  }
  const uint32_t share = filter.SharePerMille(AsBytes(half));
  EXPECT_GT(share, 400u);
  EXPECT_LT(share, 600u);
}

TEST(DictionaryFilterTest, TakesAnyDictionaryAndBlock) {
  TestRandom random(1);
  for (const size_t size : {0u, 1u, 15u, 16u, 17u, 1000u}) {
    const std::string dictionary = RandomBytes(random, size);
    const DictionaryFilter filter(AsBytes(dictionary));
    for (const size_t block_size : {0u, 1u, 15u, 16u, 17u, 40'000u}) {
      EXPECT_LE(filter.SharePerMille(AsBytes(RandomBytes(random, block_size))),
                20u);
    }
  }
}

}  // namespace
}  // namespace quire
