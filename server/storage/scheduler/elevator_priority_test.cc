// SPDX-License-Identifier: GPL-3.0-or-later
//
// The elevator over a drive that serves urgent reads first.
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "server/storage/scheduler/elevator_scheduler.h"
#include "testing/storage/elevator_testing.h"

namespace quire {
namespace {

using ::testing::IsEmpty;

class ElevatorPriorityTest : public ::testing::Test {
 protected:
  void Push(FetchClass fetch_class, int count) {
    for (int i = 0; i < count; ++i) {
      ++id_;
      ASSERT_TRUE(
          scheduler_
              .Push(kStart,
                    {.id = id_,
                     .address = {.fd = 3, .offset = FileOffset{id_ << 20}},
                     .size_bytes = 4096,
                     .fetch_class = fetch_class})
              .ok());
    }
  }

  std::vector<ScheduledRead> Dispatch(uint32_t reads_max = 1'000) {
    return scheduler_.Dispatch(
        kStart, {.reads_max = reads_max, .memory_size_bytes_max = UINT64_MAX});
  }

  void Complete(const ScheduledRead& read) {
    scheduler_.Complete(kStart, read.id);
  }

  ElevatorScheduler scheduler_{ElevatorScheduler::Options::WithPriorities()};
  uint64_t id_ = 0;
};

TEST_F(ElevatorPriorityTest, UrgentReadsJoinOthersAtTheDrive) {
  Push(FetchClass::kBatch, 50);
  const auto batch = Dispatch();
  EXPECT_EQ(batch.size(), 32);
  EXPECT_FALSE(batch[0].urgent);
  Push(FetchClass::kInteractive, 1);
  Complete(batch[0]);
  const auto urgent = Dispatch();
  ASSERT_EQ(urgent.size(), 1);
  EXPECT_EQ(urgent[0].fetch_class, FetchClass::kInteractive);
  EXPECT_TRUE(urgent[0].urgent);
  // Other reads are not held back meanwhile.
  Complete(batch[1]);
  EXPECT_EQ(Dispatch().size(), 1);
}

TEST_F(ElevatorPriorityTest, BetweenTwoVisitsTheDriveServesEightOthers) {
  Push(FetchClass::kBatch, 100);
  auto batch = Dispatch(31);
  Push(FetchClass::kInteractive, 1);
  Complete(Dispatch(1)[0]);
  Push(FetchClass::kInteractive, 1);
  for (size_t i = 0; i < 8; ++i) {
    for (const ScheduledRead& read : Dispatch()) {
      EXPECT_FALSE(read.urgent) << i;
    }
    EXPECT_EQ(scheduler_.reads_in_flight(), 32);
    Complete(batch[i]);
  }
  const auto reads = Dispatch();
  ASSERT_EQ(reads.size(), 1);
  EXPECT_TRUE(reads[0].urgent);
}

TEST_F(ElevatorPriorityTest, NothingIsOwedToThoseWhoAreNotThere) {
  Push(FetchClass::kInteractive, 1);
  Complete(Dispatch()[0]);
  Push(FetchClass::kInteractive, 1);
  const auto second = Dispatch();
  ASSERT_EQ(second.size(), 1);
  EXPECT_TRUE(second[0].urgent);
  // The share of a read at the drive ends with it.
  Push(FetchClass::kBatch, 1);
  const auto batch = Dispatch();
  ASSERT_EQ(batch.size(), 1);
  Complete(second[0]);
  Push(FetchClass::kInteractive, 1);
  EXPECT_THAT(Dispatch(), IsEmpty());
  Complete(batch[0]);
  EXPECT_EQ(Dispatch().size(), 1);
}

TEST_F(ElevatorPriorityTest, AVisitHasAnEnd) {
  Push(FetchClass::kBatch, 100);
  Dispatch(8);
  uint32_t urgent_count = 0;
  // Two interactive reads that always overlap.
  Push(FetchClass::kInteractive, 1);
  auto reads = Dispatch(1);
  while (reads[0].urgent) {
    ++urgent_count;
    ASSERT_LE(urgent_count, 24);
    Push(FetchClass::kInteractive, 1);
    const auto next = Dispatch(1);
    Complete(reads[0]);
    reads = next;
  }
  EXPECT_EQ(urgent_count, 24);
}

TEST_F(ElevatorPriorityTest, ManyAreNotUrgent) {
  Push(FetchClass::kInteractive, 20);
  for (const ScheduledRead& read : Dispatch(12)) {
    EXPECT_FALSE(read.urgent);
  }
}

}  // namespace
}  // namespace quire
