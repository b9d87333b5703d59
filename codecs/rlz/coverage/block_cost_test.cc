// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/coverage/block_cost.h"

#include <cstdint>
#include <string>

#include "gtest/gtest.h"

#include "codecs/base/bytes.h"
#include "testing/codecs/codec_test_inputs.h"

namespace quire {
namespace {

TEST(BlockCostTest, RepeatedTextIsNearlyFree) {
  TestRandom random(5);
  const std::string text = RandomText(random, 8000);
  BlockCost cost(65536);
  cost.Estimate(AsBytes(text + text));
  const uint32_t first = cost.Bits(0, 8000);
  EXPECT_GT(first, 8000 * 2);
  EXPECT_LT(first, 8000 * 6);
  EXPECT_LT(cost.Bits(8000, 16000), 200);
  // It keeps no state of earlier blocks.
  cost.Estimate(AsBytes(text));
  EXPECT_EQ(cost.Bits(0, 8000), first);
}

TEST(BlockCostTest, RandomBytesCostEightBitsAndFewValuesLess) {
  TestRandom random(6);
  const std::string bytes = RandomBytes(random, 60000);
  BlockCost cost(65536);
  cost.Estimate(AsBytes(bytes));
  EXPECT_NEAR(cost.Bits(0, 60000), 480000, 10000);
  EXPECT_NEAR(cost.Bits(1000, 2000), 8000, 400);
  std::string values = bytes;
  for (char& value : values) {
    value = static_cast<char>(value & 15);
  }
  cost.Estimate(AsBytes(values));
  EXPECT_LT(cost.Bits(0, 60000), 280000);
}

TEST(BlockCostTest, CostsAddUp) {
  TestRandom random(7);
  BlockCost cost(65536);
  for (const TestInput& input : TestInputs(random, 30000, "some dictionary")) {
    cost.Estimate(AsBytes(input.text));
    EXPECT_EQ(cost.Bits(0, 0), 0);
    uint32_t sum = 0;
    for (size_t i = 0; i < input.text.size(); i += 100) {
      sum += cost.Bits(i, i + 100);
    }
    EXPECT_LE(sum, cost.Bits(0, 30000)) << input.name;
    EXPECT_GE(sum + 300, cost.Bits(0, 30000)) << input.name;
  }
  cost.Estimate({});
  EXPECT_EQ(cost.Bits(0, 0), 0);
}

TEST(BlockCostTest, ManyBlocksAreAsOne) {
  TestRandom random(8);
  BlockCost cost(4096);
  BlockCost fresh(4096);
  for (int i = 0; i < 2000; ++i) {
    const std::string text = RandomText(random, 1 + RandomBelow(random, 600));
    cost.Estimate(AsBytes(text));
    if (i % 100 == 0) {
      fresh = BlockCost(4096);
      fresh.Estimate(AsBytes(text));
      ASSERT_EQ(cost.Bits(0, text.size()), fresh.Bits(0, text.size())) << i;
    }
  }
}

}  // namespace
}  // namespace quire
