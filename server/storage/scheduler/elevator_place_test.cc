// SPDX-License-Identifier: GPL-3.0-or-later
//
// The elevator over files with known positions on the device.
#include <optional>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "server/storage/scheduler/elevator_scheduler.h"
#include "testing/base/status_matchers.h"
#include "testing/storage/elevator_testing.h"

namespace quire {
namespace {

using ::testing::ElementsAre;

ScheduledRequest PlacedRequest(uint64_t id, uint64_t offset, uint64_t physical,
                               uint64_t contiguous_end) {
  return {
      .id = id,
      .address = {.fd = 3, .offset = FileOffset{offset}, .physical = physical},
      .size_bytes = 4096,
      .contiguous_end = FileOffset{contiguous_end}};
}

TEST(ElevatorPlaceTest, SortsByPlaceWhereItIsKnown) {
  ElevatorScheduler scheduler({});
  QUIRE_ASSERT_OK(scheduler.Push(kStart, PlacedRequest(1, 0, 9 * kFar, kFar)));
  QUIRE_ASSERT_OK(
      scheduler.Push(kStart, PlacedRequest(2, kFar, 5 * kFar, 2 * kFar)));
  ScheduledRequest unplaced = PlacedRequest(3, 2 * kFar, 0, 3 * kFar);
  unplaced.address.physical = std::nullopt;
  QUIRE_ASSERT_OK(scheduler.Push(kStart, unplaced));
  ScheduledRequest other = PlacedRequest(4, 0, 7 * kFar, kFar);
  other.address.fd = 4;
  QUIRE_ASSERT_OK(scheduler.Push(kStart, other));
  EXPECT_THAT(DispatchedIds(scheduler.Dispatch(kStart, kOneRead)),
              ElementsAre(3));
  EXPECT_THAT(DispatchedIds(scheduler.Dispatch(kStart, kOneRead)),
              ElementsAre(2));
  // Behind the sweep.
  QUIRE_ASSERT_OK(
      scheduler.Push(kStart, PlacedRequest(5, kFar, 5 * kFar, 2 * kFar)));
  EXPECT_THAT(DispatchedIds(scheduler.Dispatch(kStart, kNoLimits)),
              ElementsAre(4, 1, 5));
}

TEST(ElevatorPlaceTest, JoinsNothingOverABreakInTheFile) {
  ElevatorScheduler scheduler({});
  // Neighbours in the file but not on the device; on the device but not in the
  // file; across a break; and two in one run.
  for (const ScheduledRequest& request :
       {PlacedRequest(1, 4'096, 0, 8'192),
        PlacedRequest(2, 8'192, kFar, 99'999),
        PlacedRequest(3, kFar, 4'096, 2 * kFar),
        PlacedRequest(4, 90'000, kFar + 81'808, 99'999),
        PlacedRequest(5, 97'000, kFar + 88'808, 99'999)}) {
    QUIRE_ASSERT_OK(scheduler.Push(kStart, request));
  }
  const auto reads = scheduler.Dispatch(kStart, kNoLimits);
  ASSERT_EQ(reads.size(), 5);
  EXPECT_THAT(DispatchedIds(reads), ElementsAre(1, 3, 2, 4, 5));
  QUIRE_ASSERT_OK(scheduler.Push(kStart, PlacedRequest(6, 100, 50, 9'000)));
  QUIRE_ASSERT_OK(
      scheduler.Push(kStart, PlacedRequest(7, 4'200, 4'150, 9'000)));
  EXPECT_EQ(scheduler.Dispatch(kStart, kNoLimits).size(), 1);
}

TEST(ElevatorPlaceTest, OnePlaceMayBeTwoOfAFile) {
  ElevatorScheduler scheduler({});
  QUIRE_ASSERT_OK(scheduler.Push(kStart, PlacedRequest(1, kFar, 0, 2 * kFar)));
  QUIRE_ASSERT_OK(scheduler.Push(kStart, PlacedRequest(2, 4'096, 4'096, kFar)));
  const auto reads = scheduler.Dispatch(kStart, kNoLimits);
  ASSERT_EQ(reads.size(), 2);
  EXPECT_EQ(reads[0].address.offset.value, kFar);
  EXPECT_EQ(reads[0].size_bytes, 4'096);
}

}  // namespace
}  // namespace quire
