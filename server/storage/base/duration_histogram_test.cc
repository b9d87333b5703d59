// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/base/duration_histogram.h"

#include <chrono>
#include <numeric>

#include "gtest/gtest.h"

namespace quire {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::nanoseconds;

TEST(DurationHistogramTest, BoundsBelongToTheirBuckets) {
  DurationHistogram histogram;
  for (const uint64_t bound : DurationHistogram::kBoundsUs) {
    histogram.Add(microseconds(bound));
    histogram.Add(microseconds(bound + 1));
  }
  EXPECT_EQ(histogram.counts.front(), 1U);
  for (size_t i = 1; i < DurationHistogram::kBoundsUs.size(); ++i) {
    EXPECT_EQ(histogram.counts[i], 2U) << i;
  }
  EXPECT_EQ(histogram.counts.back(), 1U);
  EXPECT_EQ(histogram.sum_us,
            2 * std::accumulate(DurationHistogram::kBoundsUs.begin(),
                                DurationHistogram::kBoundsUs.end(), 0ULL) +
                DurationHistogram::kBoundsUs.size());
}

TEST(DurationHistogramTest, TakesAnyTime) {
  DurationHistogram histogram;
  histogram.Add(nanoseconds(-5));
  histogram.Add(nanoseconds(999));
  EXPECT_EQ(histogram.counts.front(), 2U);
  EXPECT_EQ(histogram.sum_us, 0U);
  histogram.Add(hours(100));
  EXPECT_EQ(histogram.counts.back(), 1U);
}

}  // namespace
}  // namespace quire
