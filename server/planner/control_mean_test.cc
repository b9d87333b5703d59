// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/planner/control_mean.h"

#include <array>
#include <random>

#include "gtest/gtest.h"

namespace quire {
namespace {

double Uniform(std::mt19937_64& random) {
  return static_cast<double>(random() >> 11) * 0x1p-53;
}

// The sample has the wrong share of both controls; the value depends on them
// and on something else.
TEST(ControlMeanTest, FindsTheMeanOfAll) {
  std::mt19937_64 random(1);
  ControlMean sample;
  double plain = 0;
  constexpr int kCount = 4000;
  for (int i = 0; i < kCount; ++i) {
    const double a = Uniform(random);
    // Correlated with a.
    const double b = 0.7 * a + 0.3 * Uniform(random);
    const double value = 0.1 + 0.5 * a - 0.2 * b + 0.02 * Uniform(random);
    sample.Add(value, {a, b});
    plain += value / kCount;
  }
  const ControlMean::Estimate found = sample.EstimateFor({0.3, 0.6});
  EXPECT_NEAR(found.mean, 0.1 + 0.15 - 0.12 + 0.01, 1e-3);
  EXPECT_NEAR(found.variance, 0.02 * 0.02 / 12, 1e-5);
  EXPECT_GT(plain - found.mean, 0.1);
}

TEST(ControlMeanTest, PartsAddUp) {
  std::mt19937_64 random(2);
  ControlMean all;
  std::array<ControlMean, 3> parts;
  for (size_t i = 0; i < 300; ++i) {
    const double a = Uniform(random);
    const double b = Uniform(random);
    all.Add(a * b, {a, b});
    parts[i % 3].Add(a * b, {a, b});
  }
  ControlMean sum;
  for (const ControlMean& part : parts) {
    sum.Add(part);
  }
  EXPECT_EQ(sum.count(), 300u);
  EXPECT_NEAR(sum.EstimateFor({0.2, 0.9}).mean,
              all.EstimateFor({0.2, 0.9}).mean, 1e-9);
}

TEST(ControlMeanTest, ControlsThatSayNothingChangeNothing) {
  ControlMean same;
  ControlMean twice;
  ControlMean few;
  for (int i = 0; i < 40; ++i) {
    const double value = i % 2;
    same.Add(value, {0.5, 0});
    // The second control is the first one.
    twice.Add(value, {value, value});
    if (i < 8) {
      few.Add(value, {value, 0});
    }
  }
  EXPECT_DOUBLE_EQ(same.EstimateFor({1, 1}).mean, 0.5);
  EXPECT_DOUBLE_EQ(same.EstimateFor({1, 1}).variance, 0.25);
  EXPECT_NEAR(twice.EstimateFor({0.25, 0.25}).mean, 0.25, 1e-9);
  EXPECT_NEAR(twice.EstimateFor({0.25, 0.25}).variance, 0, 1e-9);
  EXPECT_DOUBLE_EQ(few.EstimateFor({0, 0}).mean, 0.5);
}

}  // namespace
}  // namespace quire
