// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/base/moving_average.h"

#include "gtest/gtest.h"

namespace quire {
namespace {

using std::chrono::nanoseconds;

TEST(MovingAverageTest, BeginsAtTheFirstTime) {
  MovingAverage average;
  EXPECT_EQ(average.mean(), nanoseconds(0));
  average.Add(nanoseconds(1600));
  EXPECT_EQ(average.mean(), nanoseconds(1600));
}

TEST(MovingAverageTest, MovesByASixteenth) {
  MovingAverage average;
  average.Add(nanoseconds(1600));
  average.Add(nanoseconds(3200));
  EXPECT_EQ(average.mean(), nanoseconds(1700));
  average.Add(nanoseconds(100));
  EXPECT_EQ(average.mean(), nanoseconds(1600));
  for (int i = 0; i < 1000; ++i) {
    average.Add(nanoseconds(0));
  }
  EXPECT_LT(average.mean(), nanoseconds(16));
}

}  // namespace
}  // namespace quire
