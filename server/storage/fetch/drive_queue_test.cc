// SPDX-License-Identifier: GPL-3.0-or-later
//
// Tests one drive's queue separately: a device that the test controls, a
// stopped clock, no threads.
#include "server/storage/fetch/drive_queue.h"

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "server/storage/fetch/block_run.h"
#include "server/storage/fetch/drive_set.h"
#include "testing/base/status_matchers.h"
#include "testing/storage/storage_test_util.h"

namespace quire {
namespace {

using ::testing::ElementsAre;

constexpr SchedulerTime kNow{0};
constexpr uint32_t kQueuedBlockSize = 4000;
constexpr uint64_t kManyBytes = uint64_t{64} << 20;

// Two drives; tests of one use the first.
class DriveQueueTest : public ::testing::Test {
 protected:
  explicit DriveQueueTest(uint64_t memory_size_bytes = kManyBytes,
                          uint32_t depth = 8)
      : memory_(memory_size_bytes, /*direct_io=*/false) {
    for (const char* name : {"first", "second"}) {
      auto queue = DriveQueue::Open(
          {.drive = {.name = name}, .depth = depth},
          [this](Device::Done done) {
            auto device = std::make_unique<ManualDevice>(std::move(done));
            devices_.push_back(device.get());
            return OpenedDevice{std::move(device), "by hand"};
          },
          [this](DriveQueue& of, std::span<DeviceResult> results) {
            for (const DeviceResult& result : results) {
              DriveQueue::Ended ended =
                  of.TakeResult(result_time_, result, repeats_);
              ended_.push_back(std::move(ended));
            }
          },
          in_flight_, memory_);
      if (!queue.ok()) {
        ADD_FAILURE() << queue.status();
        continue;
      }
      drives_.Add(*std::move(queue));
    }
  }

  DriveQueue& queue() { return *drives_.queues()[0]; }

  ManualDevice& device() { return *devices_[0]; }

  InFlightBlock& Begin(uint64_t block_index) {
    InFlightBlock& block = in_flight_.Begin(blocks_.Fetch(block_index));
    in_flight_.Join(
        block, block.fetch, [](const auto& /*result*/) {}, kNow);
    return block;
  }

  // Enqueues the blocks as one run.
  std::vector<InFlightBlock*> Enqueue(
      DriveQueue& queue, std::initializer_list<uint64_t> block_indexes) {
    BlockRun run;
    for (const uint64_t i : block_indexes) {
      run.push_back(&Begin(i));
    }
    std::vector<InFlightBlock*> blocks(run.begin(), run.end());
    queue.Enqueue(kNow, run);
    EXPECT_TRUE(run.empty());
    return blocks;
  }

  // Plans and starts reads; returns their number.
  size_t PlanAndStart(size_t reads_max = 8) {
    DriveReads reads;
    planned_all_ = queue().Plan(kNow, reads_max, reads);
    StartReads(reads, *buffers_);
    return reads.size();
  }

  static std::vector<uint64_t> IndexesOf(const DriveQueue::Ended& ended) {
    std::vector<uint64_t> indexes;
    for (const ReadBlock& block : ended.blocks) {
      indexes.push_back(block.block->fetch.key.block.block_index);
    }
    return indexes;
  }

  // Releases the memory of the blocks.
  void EndAll() {
    for (DriveQueue::Ended& ended : ended_) {
      for (const ReadBlock& block : ended.blocks) {
        memory_.Release(WorkSizeBytes(block.block->fetch) +
                        ended.read->ReleaseBlocks(1));
        in_flight_.EndAll(*block.block, block.status.ok());
      }
    }
    ended_.clear();
  }

  uint64_t OffsetOf(uint64_t block_index) const {
    return blocks_.OffsetOf(block_index);
  }

  TestBlocks blocks_{32, kQueuedBlockSize};
  const std::shared_ptr<BufferPool> buffers_ = BufferPool::Create(0);
  InFlightTable in_flight_;
  ReadMemory memory_;
  std::vector<ManualDevice*> devices_;
  std::vector<DriveQueue::Ended> ended_;
  std::vector<DeviceRead> repeats_;
  SchedulerTime result_time_ = kNow;
  bool planned_all_ = false;
  DriveSet drives_;
};

TEST_F(DriveQueueTest, AReadTakesTheTimeSinceTheLastResult) {
  using std::chrono::milliseconds;
  EXPECT_EQ(queue().TimePerRead(), milliseconds(0));
  Enqueue(queue(), {3});
  Enqueue(queue(), {20});
  ASSERT_EQ(PlanAndStart(), 2U);
  // Both were at the drive the whole time.
  result_time_ = milliseconds(16);
  device().Serve();
  EXPECT_EQ(queue().TimePerRead(), milliseconds(16));
  result_time_ = milliseconds(16 + 8);
  device().Serve();
  EXPECT_EQ(queue().TimePerRead(), std::chrono::microseconds(15'500));
  EndAll();
}

TEST_F(DriveQueueTest, ARunIsOneRequestAndOneRead) {
  const std::vector<InFlightBlock*> blocks = Enqueue(queue(), {3, 4, 5});
  EXPECT_EQ(queue().Stats().queued_requests, 1U);
  EXPECT_EQ(blocks[0]->queue, &queue());
  ASSERT_EQ(PlanAndStart(), 1U);
  EXPECT_TRUE(planned_all_);
  EXPECT_TRUE(blocks[2]->at_device);
  EXPECT_TRUE(queue().has_reads());
  EXPECT_GE(memory_.reserved_size_bytes(), 6 * kQueuedBlockSize);
  ASSERT_EQ(device().waiting().size(), 1U);
  const DeviceRead read = device().waiting()[0];
  EXPECT_EQ(read.offset.value, OffsetOf(3));
  EXPECT_EQ(read.buffer.size(), 3 * blocks_.stored_size_bytes());

  device().Serve();
  ASSERT_EQ(ended_.size(), 1U);
  EXPECT_THAT(IndexesOf(ended_[0]), ElementsAre(3, 4, 5));
  EXPECT_TRUE(repeats_.empty());
  EXPECT_FALSE(queue().has_reads());
  const ByteView stored = ended_[0].read->StoredBytes(blocks[1]->fetch);
  const std::vector<uint8_t> text = blocks_.Text(4);
  EXPECT_TRUE(std::equal(text.begin(), text.end(), stored.begin()));
  EXPECT_EQ(queue().Stats().reads, 1U);
  EXPECT_EQ(queue().Stats().read_bytes, read.buffer.size());
  EndAll();
  EXPECT_EQ(memory_.reserved_size_bytes(), 0U);
}

TEST_F(DriveQueueTest, AReadWaitedAsLongAsItsRequestsOnAverage) {
  Enqueue(queue(), {3});
  Enqueue(queue(), {4});
  DriveReads reads;
  EXPECT_TRUE(queue().Plan(std::chrono::milliseconds(10), 8, reads));
  ASSERT_EQ(reads.size(), 1U);
  StartReads(reads, *buffers_);
  EXPECT_EQ(queue().Stats().queue_waits.sum_us, 10'000U);
  result_time_ = std::chrono::milliseconds(20);
  device().Serve();
  EndAll();
}

TEST_F(DriveQueueTest, ARunIsReadThroughOneDescriptor) {
  const BlockRun run = {&Begin(3)};
  BlockFetch next = blocks_.Fetch(4);
  EXPECT_TRUE(MayJoin(run, next, memory_));
  next.extent.direct_fd = next.extent.fd;
  EXPECT_FALSE(MayJoin(run, next, memory_));
}

TEST_F(DriveQueueTest, ADequeuedBlockSplitsItsRun) {
  const std::vector<InFlightBlock*> blocks = Enqueue(queue(), {3, 4, 5, 6});
  queue().Dequeue(kNow, *blocks[1]);
  EXPECT_EQ(queue().Stats().queued_requests, 2U);
  EXPECT_NE(blocks[0]->request_id, blocks[2]->request_id);
  EXPECT_EQ(blocks[2]->request_id, blocks[3]->request_id);
  PlanAndStart();
  EXPECT_FALSE(blocks[1]->at_device);
  EXPECT_TRUE(blocks[0]->at_device);
  EXPECT_TRUE(blocks[3]->at_device);
}

TEST_F(DriveQueueTest, APromotedBlockLeavesItsRun) {
  BlockRun run;
  for (const uint64_t i : {3U, 4U, 5U}) {
    InFlightBlock& block =
        in_flight_.Begin(blocks_.Fetch(i, FetchClass::kScan));
    in_flight_.Join(
        block, block.fetch, [](const auto& /*result*/) {}, kNow);
    run.push_back(&block);
  }
  InFlightBlock& wanted = *run[1];
  queue().Enqueue(kNow, run);
  const uint64_t request_id_before = wanted.request_id;
  queue().Promote(kNow, wanted, FetchClass::kInteractive);
  EXPECT_EQ(queue().Stats().queued_requests, 3U);
  EXPECT_NE(wanted.request_id, request_id_before);
  EXPECT_EQ(wanted.fetch.fetch_class, FetchClass::kInteractive);
  // Alone in its run it stays there.
  const uint64_t request_id = wanted.request_id;
  queue().Promote(kNow, wanted, FetchClass::kInteractive);
  EXPECT_EQ(wanted.request_id, request_id);
}

TEST_F(DriveQueueTest, DequeueAllLeavesNothingToRead) {
  Enqueue(queue(), {1, 2});
  Enqueue(queue(), {20});
  queue().DequeueAll();
  EXPECT_FALSE(queue().has_pending());
  EXPECT_EQ(PlanAndStart(), 0U);
}

TEST_F(DriveQueueTest, AfterAFaultTheRestIsReadBlockByBlock) {
  Enqueue(queue(), {0, 1, 2});
  PlanAndStart();
  // The first block is complete, the second is not.
  device().Fail(absl::UnavailableError("EIO"),
                blocks_.stored_size_bytes() + 10);
  ASSERT_EQ(ended_.size(), 1U);
  EXPECT_THAT(IndexesOf(ended_[0]), ElementsAre(0));
  QUIRE_EXPECT_OK(ended_[0].blocks[0].status);
  ASSERT_EQ(repeats_.size(), 1U);
  EXPECT_EQ(repeats_[0].offset.value, OffsetOf(1));
  EXPECT_EQ(repeats_[0].buffer.size(), blocks_.stored_size_bytes());
  EXPECT_TRUE(queue().has_reads());
  EXPECT_EQ(queue().Stats().errors, 1U);
  EXPECT_EQ(in_flight_.stats().repeated_blocks, 1U);

  queue().Submit(std::exchange(repeats_, {}));
  // Alone it fails for good, and the error names its offset.
  device().Fail(absl::UnavailableError("EIO"));
  ASSERT_EQ(ended_.size(), 2U);
  EXPECT_THAT(IndexesOf(ended_[1]), ElementsAre(1));
  EXPECT_THAT(ended_[1].blocks[0].status,
              FailsWith(absl::StatusCode::kUnavailable,
                        ::testing::HasSubstr(absl::StrCat(
                            "segment 0, byte ", OffsetOf(1), ": EIO"))));
  ASSERT_EQ(repeats_.size(), 1U);
  EXPECT_EQ(repeats_[0].offset.value, OffsetOf(2));

  queue().Submit(std::exchange(repeats_, {}));
  device().Serve();
  ASSERT_EQ(ended_.size(), 3U);
  EXPECT_THAT(IndexesOf(ended_[2]), ElementsAre(2));
  EXPECT_FALSE(queue().has_reads());
  EXPECT_TRUE(repeats_.empty());
  EndAll();
  EXPECT_EQ(memory_.reserved_size_bytes(), 0U);
}

TEST_F(DriveQueueTest, TheEndOfTheFileIsNotRepeated) {
  Enqueue(queue(), {0, 1});
  PlanAndStart();
  device().Fail(absl::DataLossError("the file ends"), 10);
  ASSERT_EQ(ended_.size(), 1U);
  EXPECT_THAT(IndexesOf(ended_[0]), ElementsAre(0, 1));
  EXPECT_THAT(ended_[0].blocks[1].status, HasCode(absl::StatusCode::kDataLoss));
  EXPECT_TRUE(repeats_.empty());
}

class ShallowDriveQueueTest : public DriveQueueTest {
 protected:
  ShallowDriveQueueTest() : DriveQueueTest(kManyBytes, /*depth=*/2) {}
};

TEST_F(ShallowDriveQueueTest, HasAtMostItsDepthAtTheDevice) {
  for (const uint64_t i : {0U, 10U, 20U, 30U}) {
    Enqueue(queue(), {i});
  }
  // The blocks lie too far apart to be joined.
  EXPECT_EQ(PlanAndStart(1), 1U);
  EXPECT_EQ(PlanAndStart(8), 1U);
  EXPECT_EQ(PlanAndStart(8), 0U);
  device().Serve();
  EXPECT_EQ(PlanAndStart(8), 1U);
}

// Memory for one block's read and its text.
class TightDriveQueueTest : public DriveQueueTest {
 protected:
  TightDriveQueueTest()
      : DriveQueueTest(2 * BufferPool::MemorySizeBytes(kQueuedBlockSize + 8)) {}
};

TEST_F(TightDriveQueueTest, WaitsForMemoryAndNeverForEver) {
  Enqueue(queue(), {0});
  Enqueue(queue(), {20});
  EXPECT_EQ(PlanAndStart(), 1U);
  EXPECT_FALSE(planned_all_);
  EXPECT_EQ(PlanAndStart(), 0U);
  device().Serve();
  EXPECT_EQ(PlanAndStart(), 0U) << "decoding still holds the memory";
  EndAll();
  EXPECT_EQ(PlanAndStart(), 1U);
  EXPECT_TRUE(planned_all_);
}

TEST_F(TightDriveQueueTest, ADriveWithoutMemoryKeepsItsTurn) {
  DriveQueue& second = *drives_.queues()[1];
  Enqueue(queue(), {0});
  Enqueue(queue(), {20});
  Enqueue(second, {10});
  EXPECT_EQ(drives_.Plan(kNow).size(), 1U);
  EXPECT_EQ(queue().Stats().reads_in_flight, 1U);
  EXPECT_EQ(second.Stats().reads_in_flight, 0U);
  EXPECT_TRUE(drives_.Plan(kNow).empty());
}

TEST_F(DriveQueueTest, DrivesTakeTurns) {
  DriveQueue& second = *drives_.queues()[1];
  for (const uint64_t i : {0U, 10U}) {
    Enqueue(queue(), {i});
  }
  for (const uint64_t i : {5U, 25U}) {
    Enqueue(second, {i});
  }
  const DriveReads reads = drives_.Plan(kNow);
  std::vector<std::string> names;
  for (const DriveReadPtr& read : reads) {
    names.push_back(read->queue().name());
  }
  EXPECT_THAT(names, ElementsAre("first", "second", "first", "second"));
}

TEST_F(DriveQueueTest, ABlockBelongsToItsFilesDriveOrElseToTheFirst) {
  FilePlacement placement;
  placement.place.drive.name = "second";
  BlockFetch fetch = blocks_.Fetch(0);
  EXPECT_EQ(&drives_.QueueOf(fetch.placement.get()), &queue());
  fetch.placement = std::make_shared<const FilePlacement>(placement);
  EXPECT_EQ(&drives_.QueueOf(fetch.placement.get()), drives_.queues()[1].get());
  placement.place.drive.name = "third";
  fetch.placement = std::make_shared<const FilePlacement>(placement);
  EXPECT_EQ(&drives_.QueueOf(fetch.placement.get()), &queue());
  EXPECT_EQ(drives_.Find("third"), nullptr);
}

TEST_F(DriveQueueTest, DescribesItsDrive) {
  const DriveDescription description = queue().Describe();
  EXPECT_EQ(description.drive.name, "first");
  EXPECT_EQ(description.engine, "manual");
  EXPECT_EQ(description.note, "by hand");
  EXPECT_FALSE(description.uses_priorities);
}

}  // namespace
}  // namespace quire
