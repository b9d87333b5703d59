// SPDX-License-Identifier: Apache-2.0
#include "loadtest/report/latency_histogram.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace quire {
namespace {

TEST(LatencyHistogramTest, HasNothingToSayWhenEmpty) {
  const LatencyHistogram histogram;
  EXPECT_EQ(histogram.count(), 0u);
  EXPECT_EQ(histogram.PercentileUs(50), 0u);
  EXPECT_EQ(histogram.max_us(), 0u);
  EXPECT_EQ(histogram.mean_us(), 0);
}

TEST(LatencyHistogramTest, IsExactForSmallValues) {
  LatencyHistogram histogram;
  for (uint64_t value = 1; value <= 100; ++value) {
    histogram.Add(value);
  }
  EXPECT_EQ(histogram.PercentileUs(1), 1u);
  EXPECT_EQ(histogram.PercentileUs(50), 50u);
  EXPECT_EQ(histogram.PercentileUs(99), 99u);
  EXPECT_EQ(histogram.PercentileUs(100), 100u);
}

TEST(LatencyHistogramTest, AddsManyAtOnce) {
  LatencyHistogram histogram;
  histogram.Add(10, 3);
  histogram.Add(1'000'000, 0);
  histogram.Add(50);
  EXPECT_EQ(histogram.count(), 4u);
  EXPECT_EQ(histogram.max_us(), 50u);
  EXPECT_EQ(histogram.mean_us(), 20);
  EXPECT_EQ(histogram.PercentileUs(75), 10u);
}

TEST(LatencyHistogramTest, KeepsTheLongestExactly) {
  LatencyHistogram histogram;
  histogram.Add(uint64_t{1} << 50);
  histogram.Add(12345678);
  EXPECT_EQ(histogram.max_us(), uint64_t{1} << 50);
  EXPECT_GE(histogram.PercentileUs(50), 12345678u);
  EXPECT_LE(histogram.PercentileUs(50), 12345678u + 12345678u / 64);
}

TEST(LatencyHistogramTest, IsNeverTooLowAndAtMostOne64thTooHigh) {
  constexpr unsigned kSeed = 20261121;
  SCOPED_TRACE(kSeed);
  std::mt19937_64 random(kSeed);
  LatencyHistogram histogram;
  std::vector<uint64_t> values(10'000);
  for (uint64_t& value : values) {
    value = uint64_t{1} << (random() % 38);
    value += random() % value;
    histogram.Add(value);
  }
  std::sort(values.begin(), values.end());
  for (const double percent :
       {0.01, 1.0, 37.5, 50.0, 90.0, 99.0, 99.9, 100.0}) {
    const auto rank = static_cast<size_t>(
        std::ceil(percent / 100 * static_cast<double>(values.size())));
    const uint64_t exact = values[rank - 1];
    EXPECT_GE(histogram.PercentileUs(percent), exact) << percent;
    EXPECT_LE(histogram.PercentileUs(percent), exact + exact / 64) << percent;
  }
}

}  // namespace
}  // namespace quire
