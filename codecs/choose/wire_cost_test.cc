// SPDX-License-Identifier: Apache-2.0
#include "codecs/choose/wire_cost.h"

#include <limits>

#include "gtest/gtest.h"

namespace quire {
namespace {

TEST(WireCostTest, GivesThePublishedThresholds) {
  // Table 1 of the paper from its Table 2, in MB/s, for one core; the paper's
  // own speeds are rounded.
  EXPECT_NEAR(PaysBelowBytesPerSecond(2945, 6460, 1 / 1.825), 914, 10);
  EXPECT_NEAR(PaysPipelinedBelowBytesPerSecond(2945, 6460, 1 / 1.825), 1330,
              10);
}

TEST(WireCostTest, NeverPaysWithoutGettingSmaller) {
  EXPECT_EQ(PaysBelowBytesPerSecond(1e9, 1e9, 1), 0);
  EXPECT_EQ(PaysBelowBytesPerSecond(1e9, 1e9, 1.7), 0);
  EXPECT_EQ(PaysPipelinedBelowBytesPerSecond(1e9, 1e9, 1.7), 0);
}

TEST(WireCostTest, CostsCrossWhereEquationThreeSays) {
  const double infinite = std::numeric_limits<double>::infinity();
  const WireRate identity;
  for (const double rate : {0.1, 0.45, 0.9}) {
    for (const double decode_speed : {3e8, 2e9}) {
      const WireRate encoded{rate, 1e9 / decode_speed};
      const double limit =
          PaysBelowBytesPerSecond(infinite, decode_speed, rate);
      const WireLink slower{50'000, 1e9 / (0.99 * limit)};
      const WireLink faster{50'000, 1e9 / (1.01 * limit)};
      for (const double size : {100.0, 1e6}) {
        EXPECT_LT(AnswerCostNs(slower, encoded, size),
                  AnswerCostNs(slower, identity, size));
        EXPECT_GT(AnswerCostNs(faster, encoded, size),
                  AnswerCostNs(faster, identity, size));
      }
    }
  }
}

TEST(WireCostTest, ChargesEachAnswer) {
  EXPECT_EQ(AnswerCostNs({1000, 2}, {0.5, 3}, 10), 1000 + 10 * (0.5 * 2 + 3));
  EXPECT_EQ(AnswerCostNs({1000, 2}, {0.5, 3}, 0), 1000);
}

}  // namespace
}  // namespace quire
