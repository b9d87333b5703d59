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

TEST(LatencyHistogramTest, MergedIsAsIfAllHadBeenAddedToOne) {
  std::mt19937_64 random(7);
  LatencyHistogram all;
  LatencyHistogram few;
  LatencyHistogram many;
  for (int i = 0; i < 3000; ++i) {
    const uint64_t value = random() >> (24 + random() % 40);
    all.Add(value);
    (i % 10 == 0 ? few : many).Add(value);
  }
  few.Merge(many);
  few.Merge({});
  EXPECT_EQ(few.count(), all.count());
  EXPECT_EQ(few.max_us(), all.max_us());
  EXPECT_EQ(few.mean_us(), all.mean_us());
  for (const double percent : {1.0, 50.0, 99.0, 99.9}) {
    EXPECT_EQ(few.PercentileUs(percent), all.PercentileUs(percent));
  }
}

TEST(LatencyHistogramTest, BucketsAscendAndHoldAllValues) {
  LatencyHistogram histogram;
  EXPECT_TRUE(histogram.Buckets().empty());
  EXPECT_EQ(histogram.mean_us(), 0);
  for (const uint64_t value : {3u, 3u, 5u, 1000u}) {
    histogram.Add(value);
  }
  histogram.Add(uint64_t{1} << 60);
  const std::vector<LatencyHistogram::Bucket> buckets = histogram.Buckets();
  ASSERT_EQ(buckets.size(), 4u);
  EXPECT_EQ(buckets[0].upper_bound_us, 3u);
  EXPECT_EQ(buckets[0].count, 2u);
  EXPECT_EQ(buckets[1].upper_bound_us, 5u);
  EXPECT_GE(buckets[2].upper_bound_us, 1000u);
  EXPECT_LE(buckets[2].upper_bound_us, 1015u);
  EXPECT_EQ(buckets[3].upper_bound_us, uint64_t{1} << 60);
}

}  // namespace
}  // namespace quire
