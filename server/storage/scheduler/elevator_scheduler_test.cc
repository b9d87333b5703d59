// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/scheduler/elevator_scheduler.h"

#include <chrono>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "testing/base/status_matchers.h"
#include "testing/storage/elevator_testing.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

ScheduledRequest Request(uint64_t id, uint64_t offset,
                         uint32_t size_bytes = 4096,
                         FetchClass fetch_class = FetchClass::kInteractive) {
  return {.id = id,
          .address = {.fd = 3, .offset = FileOffset{offset}},
          .size_bytes = size_bytes,
          .memory_size_bytes = 0,
          .fetch_class = fetch_class};
}

TEST(ElevatorSchedulerTest, SweepsUpwardsFromTheLastReadThenWraps) {
  ElevatorScheduler scheduler({});
  for (const uint64_t place : std::vector<uint64_t>{5, 1, 9, 7}) {
    QUIRE_ASSERT_OK(scheduler.Push(kStart, Request(place, place * kFar)));
  }
  EXPECT_THAT(DispatchedIds(scheduler.Dispatch(kStart, kOneRead)),
              ElementsAre(1));
  EXPECT_THAT(DispatchedIds(scheduler.Dispatch(kStart, kOneRead)),
              ElementsAre(5));
  // Behind the sweep: they wait for the next. Ahead: they join this one.
  QUIRE_ASSERT_OK(scheduler.Push(kStart, Request(2, 2 * kFar)));
  QUIRE_ASSERT_OK(scheduler.Push(kStart, Request(50, 5 * kFar)));
  QUIRE_ASSERT_OK(scheduler.Push(kStart, Request(8, 8 * kFar)));
  EXPECT_THAT(DispatchedIds(scheduler.Dispatch(kStart, kNoLimits)),
              ElementsAre(7, 8, 9, 2, 50));
  EXPECT_EQ(scheduler.pending_requests(), 0);
  EXPECT_EQ(scheduler.reads_in_flight(), 7);
}

TEST(ElevatorSchedulerTest, SortsFilesToo) {
  ElevatorScheduler scheduler({});
  ScheduledRequest other = Request(1, 0);
  other.address.fd = 4;
  QUIRE_ASSERT_OK(scheduler.Push(kStart, other));
  QUIRE_ASSERT_OK(scheduler.Push(kStart, Request(2, 4096)));
  const auto reads = scheduler.Dispatch(kStart, kNoLimits);
  ASSERT_EQ(reads.size(), 2);
  EXPECT_EQ(reads[0].address.fd, 3);
  EXPECT_EQ(reads[1].address.fd, 4);
}

TEST(ElevatorSchedulerTest, SaysWhenMemoryIsWhatItLacks) {
  ElevatorScheduler scheduler({});
  QUIRE_ASSERT_OK(scheduler.Push(kStart, Request(1, 0)));
  DispatchLimits limits{.reads_max = 1, .memory_size_bytes_max = 4'095};
  EXPECT_THAT(scheduler.Dispatch(kStart, limits), IsEmpty());
  EXPECT_TRUE(scheduler.lacks_memory());
  limits.memory_size_bytes_max = 4'096;
  EXPECT_EQ(scheduler.Dispatch(kStart, limits).size(), 1);
  EXPECT_FALSE(scheduler.lacks_memory());
}

TEST(ElevatorSchedulerTest, JoinsAcrossGapsUpToTheLimit) {
  ElevatorScheduler scheduler({.gap_size_bytes_max = 1000});
  QUIRE_ASSERT_OK(scheduler.Push(kStart, Request(1, 0)));
  QUIRE_ASSERT_OK(scheduler.Push(kStart, Request(2, 4096)));
  QUIRE_ASSERT_OK(scheduler.Push(kStart, Request(3, 2 * 4096 + 1000)));
  QUIRE_ASSERT_OK(scheduler.Push(kStart, Request(4, 3 * 4096 + 2001)));
  const auto reads = scheduler.Dispatch(kStart, kNoLimits);
  ASSERT_EQ(reads.size(), 2);
  EXPECT_THAT(reads[0].request_ids, ElementsAre(1, 2, 3));
  EXPECT_EQ(reads[0].size_bytes, 3 * 4096 + 1000);
  EXPECT_THAT(reads[1].request_ids, ElementsAre(4));
  EXPECT_EQ(reads[1].size_bytes, 4096);
}

TEST(ElevatorSchedulerTest, JoinsRequestsThatOverlap) {
  ElevatorScheduler scheduler({});
  QUIRE_ASSERT_OK(scheduler.Push(kStart, Request(1, 100, 1000)));
  QUIRE_ASSERT_OK(scheduler.Push(kStart, Request(2, 100, 10)));
  QUIRE_ASSERT_OK(scheduler.Push(kStart, Request(3, 600, 1000)));
  const auto reads = scheduler.Dispatch(kStart, kNoLimits);
  ASSERT_EQ(reads.size(), 1);
  EXPECT_THAT(reads[0].request_ids, ElementsAre(1, 2, 3));
  EXPECT_EQ(reads[0].address.offset.value, 100);
  EXPECT_EQ(reads[0].size_bytes, 1500);
}

TEST(ElevatorSchedulerTest, LimitsTheSizeOfJoinedReadsOnly) {
  ElevatorScheduler scheduler({.read_size_bytes_max = 10000});
  QUIRE_ASSERT_OK(scheduler.Push(kStart, Request(1, 0, 5000)));
  QUIRE_ASSERT_OK(scheduler.Push(kStart, Request(2, 5000, 5000)));
  QUIRE_ASSERT_OK(scheduler.Push(kStart, Request(3, 10000, 20000)));
  QUIRE_ASSERT_OK(scheduler.Push(kStart, Request(4, 30000, 1)));
  const auto reads = scheduler.Dispatch(kStart, kNoLimits);
  ASSERT_EQ(reads.size(), 3);
  EXPECT_EQ(reads[0].size_bytes, 10000);
  EXPECT_EQ(reads[1].size_bytes, 20000);
  EXPECT_THAT(reads[2].request_ids, ElementsAre(4));
}

TEST(ElevatorSchedulerTest, KeepsToTheMemoryGiven) {
  ElevatorScheduler scheduler(
      {.buffer_memory_size_bytes = [](uint64_t size) { return 2 * size; }});
  for (uint64_t i = 0; i < 4; ++i) {
    ScheduledRequest request = Request(i, i * 100, 100);
    request.memory_size_bytes = 50;
    QUIRE_ASSERT_OK(scheduler.Push(kStart, request));
  }
  DispatchLimits limits{.reads_max = 9, .memory_size_bytes_max = 249};
  EXPECT_THAT(scheduler.Dispatch(kStart, limits), IsEmpty());
  limits.memory_size_bytes_max = 500;
  auto reads = scheduler.Dispatch(kStart, limits);
  ASSERT_EQ(reads.size(), 1);
  EXPECT_THAT(reads[0].request_ids, ElementsAre(0, 1));
  EXPECT_EQ(reads[0].memory_size_bytes, 500);
  // A read above the whole limit goes alone when nothing else is in flight.
  limits = {.reads_max = 9, .memory_size_bytes_max = 0, .at_least_one = true};
  EXPECT_THAT(DispatchedIds(scheduler.Dispatch(kStart, limits)),
              ElementsAre(2));
}

TEST(ElevatorSchedulerTest, CancelsAndRefuses) {
  ElevatorScheduler scheduler({.pending_requests_max = 2});
  QUIRE_ASSERT_OK(scheduler.Push(kStart, Request(1, 0)));
  EXPECT_THAT(scheduler.Push(kStart, Request(1, kFar)),
              HasCode(absl::StatusCode::kInternal));
  QUIRE_ASSERT_OK(scheduler.Push(kStart, Request(2, kFar)));
  EXPECT_THAT(scheduler.Push(kStart, Request(3, 0)),
              HasCode(absl::StatusCode::kResourceExhausted));
  EXPECT_TRUE(scheduler.Cancel(1));
  EXPECT_FALSE(scheduler.Cancel(1));
  const auto reads = scheduler.Dispatch(kStart, kNoLimits);
  EXPECT_THAT(DispatchedIds(reads), ElementsAre(2));
  EXPECT_FALSE(scheduler.Cancel(2));
  scheduler.Complete(kStart, reads[0].id);
  EXPECT_EQ(scheduler.reads_in_flight(), 0);
}

TEST(ElevatorSchedulerTest, TellsHowLongRequestsWaited) {
  ElevatorScheduler scheduler({});
  QUIRE_ASSERT_OK(scheduler.Push(std::chrono::milliseconds(10), Request(1, 0)));
  QUIRE_ASSERT_OK(
      scheduler.Push(std::chrono::milliseconds(30), Request(2, 4096)));
  const auto reads =
      scheduler.Dispatch(std::chrono::milliseconds(35), kNoLimits);
  ASSERT_EQ(reads.size(), 1);
  EXPECT_EQ(reads[0].waited, std::chrono::milliseconds(30));
}

TEST(ElevatorSchedulerTest, ServesInteractiveFirstButNoClassStarves) {
  ElevatorScheduler scheduler({});
  uint64_t id = 0;
  for (uint64_t i = 0; i < 100; ++i) {
    for (const FetchClass fetch_class :
         {FetchClass::kScan, FetchClass::kBatch, FetchClass::kInteractive}) {
      ++id;
      QUIRE_ASSERT_OK(
          scheduler.Push(kStart, Request(id, id * kFar, 4096, fetch_class)));
    }
  }
  std::string order;
  for (int i = 0; i < 80; ++i) {
    const auto read = scheduler.Dispatch(kStart, kOneRead);
    order += "ibs"[static_cast<int>(read[0].fetch_class)];
    // The first stays at the device, so that no other may begin.
    if (i > 0) {
      scheduler.Complete(kStart, read[0].id);
    }
  }
  const std::string turn(24, 'i');
  EXPECT_EQ(order, turn + "bbbbbbbb" + turn + "sbbbbbbb" + "iiiiiiiiiiiiiiii");
}

TEST(ElevatorSchedulerTest, PromotionMovesARequestToTheOtherClass) {
  ElevatorScheduler scheduler({});
  QUIRE_ASSERT_OK(
      scheduler.Push(kStart, Request(1, 0, 4096, FetchClass::kScan)));
  QUIRE_ASSERT_OK(
      scheduler.Push(kStart, Request(2, kFar, 4096, FetchClass::kScan)));
  scheduler.Promote(2, FetchClass::kInteractive);
  scheduler.Promote(2, FetchClass::kBatch);
  scheduler.Promote(77, FetchClass::kBatch);
  const auto reads = scheduler.Dispatch(kStart, kNoLimits);
  EXPECT_THAT(DispatchedIds(reads), ElementsAre(2));
  EXPECT_EQ(reads[0].fetch_class, FetchClass::kInteractive);
  scheduler.Complete(kStart, reads[0].id);
  EXPECT_THAT(DispatchedIds(scheduler.Dispatch(kStart, kNoLimits)),
              ElementsAre(1));
}

TEST(ElevatorSchedulerTest, OthersRideAlong) {
  ElevatorScheduler scheduler({});
  QUIRE_ASSERT_OK(
      scheduler.Push(kStart, Request(1, 4096, 4096, FetchClass::kScan)));
  QUIRE_ASSERT_OK(scheduler.Push(kStart, Request(2, 0)));
  const auto reads = scheduler.Dispatch(kStart, kOneRead);
  EXPECT_THAT(reads[0].request_ids, ElementsAre(2, 1));
}

TEST(ElevatorSchedulerTest, InteractiveReadsAtTheDeviceKeepOthersBack) {
  ElevatorScheduler scheduler({});
  QUIRE_ASSERT_OK(scheduler.Push(kStart, Request(1, 0)));
  const auto interactive = scheduler.Dispatch(kStart, kNoLimits);
  QUIRE_ASSERT_OK(
      scheduler.Push(kStart, Request(2, kFar, 4096, FetchClass::kBatch)));
  EXPECT_THAT(scheduler.Dispatch(kStart, kNoLimits), IsEmpty());
  scheduler.Complete(kStart, interactive[0].id);
  EXPECT_THAT(DispatchedIds(scheduler.Dispatch(kStart, kNoLimits)),
              ElementsAre(2));
}

TEST(ElevatorSchedulerTest, OneWhoNeverPausesLeavesEightReadsBetweenHis) {
  ElevatorScheduler scheduler({});
  for (uint64_t i = 0; i < 100; ++i) {
    QUIRE_ASSERT_OK(
        scheduler.Push(kStart, Request(i, i * kFar, 4096, FetchClass::kBatch)));
  }
  std::string order;
  uint64_t id = 1'000;
  ++id;
  QUIRE_ASSERT_OK(scheduler.Push(kStart, Request(id, id * kFar)));
  for (int i = 0; i < 28; ++i) {
    const auto read = scheduler.Dispatch(kStart, kOneRead);
    order += "ibs"[static_cast<int>(read[0].fetch_class)];
    scheduler.Complete(kStart, read[0].id);
    if (read[0].fetch_class == FetchClass::kInteractive) {
      ++id;
      QUIRE_ASSERT_OK(scheduler.Push(kStart, Request(id, id * kFar)));
    }
  }
  EXPECT_EQ(order, "ibbbbbbbbibbbbbbbbibbbbbbbbi");
}

TEST(ElevatorSchedulerTest, DepthGoesByWhoElseCame) {
  ElevatorScheduler scheduler({});
  uint64_t id = 0;
  const auto push_batches = [&] {
    for (int i = 0; i < 100; ++i) {
      ++id;
      ASSERT_TRUE(
          scheduler
              .Push(kStart, Request(id, id * kFar, 4096, FetchClass::kBatch))
              .ok());
    }
  };
  push_batches();
  auto reads = scheduler.Dispatch(kStart, kNoLimits);
  EXPECT_EQ(reads.size(), 32);
  EXPECT_THAT(scheduler.Dispatch(kStart, kNoLimits), IsEmpty());
  for (const ScheduledRead& read : reads) {
    scheduler.Complete(kStart, read.id);
  }
  QUIRE_ASSERT_OK(scheduler.Push(kStart, Request(9'999, 0)));
  reads = scheduler.Dispatch(kStart, kNoLimits);
  ASSERT_EQ(reads.size(), 1);
  scheduler.Complete(kStart, reads[0].id);
  const SchedulerTime soon = std::chrono::milliseconds(1'900);
  EXPECT_EQ(scheduler.Dispatch(soon, kNoLimits).size(), 7);
  const SchedulerTime later = std::chrono::milliseconds(2'100);
  EXPECT_EQ(scheduler.Dispatch(later, kNoLimits).size(), 25);
}

TEST(ElevatorSchedulerTest, WhereRequestsLieDenselyTheOrderIsKept) {
  ElevatorScheduler scheduler({.gap_size_bytes_max = 1'000});
  for (uint64_t i = 0; i < 100; ++i) {
    QUIRE_ASSERT_OK(scheduler.Push(
        kStart, Request(i, i * 100'000, 4096, FetchClass::kBatch)));
  }
  EXPECT_THAT(DispatchedIds(scheduler.Dispatch(kStart, kNoLimits)),
              ElementsAre(0, 1, 2, 3));
}

TEST(ElevatorSchedulerTest, ADriveWithoutMovingPartsGetsAllAtOnce) {
  ElevatorScheduler scheduler(ElevatorScheduler::Options::SolidState());
  for (uint64_t i = 0; i < 100; ++i) {
    QUIRE_ASSERT_OK(scheduler.Push(
        kStart,
        Request(i, i * 100'000, 4096,
                i % 2 == 0 ? FetchClass::kInteractive : FetchClass::kBatch)));
  }
  EXPECT_EQ(scheduler.Dispatch(kStart, kNoLimits).size(), 100);
}

TEST(ElevatorSchedulerTest, ArrivalsAheadOfTheSweepCannotHoldOthersBack) {
  ElevatorScheduler scheduler({});
  QUIRE_ASSERT_OK(scheduler.Push(kStart, Request(1, 10 * kFar)));
  scheduler.Dispatch(kStart, kOneRead);
  QUIRE_ASSERT_OK(scheduler.Push(kStart, Request(2, 0)));
  uint64_t reads = 0;
  for (uint64_t place = 11;; ++place) {
    QUIRE_ASSERT_OK(scheduler.Push(kStart, Request(place, place * kFar)));
    const auto read = scheduler.Dispatch(kStart, kOneRead);
    scheduler.Complete(kStart, read[0].id);
    ++reads;
    if (read[0].request_ids[0] == 2) {
      break;
    }
    ASSERT_LE(reads, SweepQueue::ReadsUntilServedMax(2));
  }
}

TEST(ElevatorSchedulerTest, AClientWithLittleIsServedAmidOneWithMuch) {
  ElevatorScheduler scheduler({});
  uint64_t id = 0;
  for (int i = 0; i < 5'000; ++i) {
    ++id;
    ScheduledRequest request = Request(id, id * kFar, 4096, FetchClass::kBatch);
    request.client_id = 1;
    QUIRE_ASSERT_OK(scheduler.Push(kStart, request));
  }
  scheduler.Complete(kStart, scheduler.Dispatch(kStart, kOneRead)[0].id);
  ScheduledRequest small = Request(++id, 0, 4096, FetchClass::kBatch);
  small.client_id = 2;
  QUIRE_ASSERT_OK(scheduler.Push(kStart, small));
  for (int reads = 1;; ++reads) {
    const auto read = scheduler.Dispatch(kStart, kOneRead);
    scheduler.Complete(kStart, read[0].id);
    if (read[0].request_ids[0] == id) {
      EXPECT_TRUE(read[0].overdue);
      break;
    }
    ASSERT_LT(reads, 100);
  }
}

// --- Scrubbing ---

TEST(ElevatorScrubTest, WaitsForAnIdleDriveOrItsShare) {
  for (const FetchClass other :
       {FetchClass::kInteractive, FetchClass::kBatch, FetchClass::kScan}) {
    ElevatorScheduler scheduler({});
    const auto push = [&](uint64_t id, FetchClass fetch_class) {
      QUIRE_ASSERT_OK(
          scheduler.Push(SchedulerTime{0},
                         {.id = id,
                          .address = {.fd = 3, .offset = FileOffset{id * kFar}},
                          .size_bytes = 4096,
                          .memory_size_bytes = 0,
                          .fetch_class = fetch_class}));
    };
    const auto next = [&]() -> uint64_t {
      const auto reads = scheduler.Dispatch(SchedulerTime{0}, kOneRead);
      if (reads.size() != 1) {
        return 0;
      }
      scheduler.Complete(SchedulerTime{0}, reads[0].id);
      return reads[0].request_ids.at(0);
    };
    push(1, FetchClass::kScrub);
    push(1000, other);
    const auto in_flight = scheduler.Dispatch(SchedulerTime{0}, kOneRead);
    EXPECT_THAT(DispatchedIds(in_flight), ::testing::ElementsAre(1000));
    // Not next to a read of a client.
    EXPECT_THAT(scheduler.Dispatch(SchedulerTime{0}, kOneRead),
                ::testing::IsEmpty());
    scheduler.Complete(SchedulerTime{0}, in_flight[0].id);
    EXPECT_EQ(next(), 1u);
    // Under load it has one read in 65.
    push(2, FetchClass::kScrub);
    for (uint64_t id = 1001; id <= 1200; ++id) {
      push(id, other);
    }
    uint64_t passed_over = 0;
    while (next() != 2) {
      ++passed_over;
      ASSERT_LE(passed_over, 64u);
    }
    EXPECT_EQ(passed_over, 64u);
  }
}

}  // namespace
}  // namespace quire
