// SPDX-License-Identifier: Apache-2.0
#include "loadtest/requests/arrival_schedule.h"

#include <cmath>

#include "gtest/gtest.h"

namespace quire {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

TEST(ArrivalScheduleTest, ConstantArrivalsAreEvenAndDoNotDrift) {
  ArrivalSchedule schedule(LoadArrivals::kConstant, 3, 1);
  EXPECT_EQ(schedule.NextNs(), 0u);
  EXPECT_EQ(schedule.NextNs(), kSecond / 3);
  for (int i = 0; i < 2998; ++i) {
    schedule.NextNs();
  }
  EXPECT_NEAR(static_cast<double>(schedule.NextNs()), 1000.0 * kSecond, 10);
}

TEST(ArrivalScheduleTest, PoissonArrivalsHaveExponentialGaps) {
  constexpr int kCount = 100'000;
  constexpr double kRate = 1000;
  ArrivalSchedule schedule(LoadArrivals::kPoisson, kRate, 42);
  ArrivalSchedule same(LoadArrivals::kPoisson, kRate, 42);
  uint64_t before = 0;
  double sum = 0;
  double square_sum = 0;
  int long_count = 0;
  for (int i = 0; i < kCount; ++i) {
    const uint64_t time = schedule.NextNs();
    ASSERT_GE(time, before);
    ASSERT_EQ(time, same.NextNs());
    const double gap = static_cast<double>(time - before) / kSecond * kRate;
    sum += gap;
    square_sum += gap * gap;
    long_count += gap > 1 ? 1 : 0;
    before = time;
  }
  // An exponential distribution of mean 1: variance 1, P(> 1) = 1 / e.
  EXPECT_NEAR(sum / kCount, 1, 0.02);
  EXPECT_NEAR(square_sum / kCount - 1, 1, 0.05);
  EXPECT_NEAR(static_cast<double>(long_count) / kCount, std::exp(-1), 0.01);
}

TEST(ArrivalScheduleTest, ARateOfRequestsIsDividedAmongBatches) {
  LoadOptions options;
  EXPECT_EQ(ArrivalSchedule::Of(options), nullptr);
  options.requests_per_second = 1000;
  options.arrivals = LoadArrivals::kConstant;
  options.mode = LoadMode::kBatch;
  options.batch_size = 100;
  const std::unique_ptr<ArrivalSchedule> schedule =
      ArrivalSchedule::Of(options);
  schedule->NextNs();
  EXPECT_EQ(schedule->NextNs(), kSecond / 10);
}

}  // namespace
}  // namespace quire
