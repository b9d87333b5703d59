// SPDX-License-Identifier: GPL-3.0-or-later
//
// Tests decoding separately, on the test's thread.
#include "server/storage/fetch/decode_task.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "server/storage/fetch/drive_queue.h"
#include "testing/base/status_matchers.h"
#include "testing/storage/storage_test_util.h"

namespace quire {
namespace {

using ::testing::ElementsAre;

constexpr uint32_t kBlockSizeBytes = 4000;

// Records the blocks that are reported as damaged.
class RecordingDecoder final : public BlockDecoder {
 public:
  explicit RecordingDecoder(std::shared_ptr<const BlockDecoder> decoder)
      : decoder_(std::move(decoder)) {}

  absl::Status Decode(BlockAddress block, ByteView stored,
                      std::span<const BlockPart> parts) const override {
    return decoder_->Decode(block, stored, parts);
  }

  void NoteDamage(BlockAddress block,
                  const absl::Status& /*status*/) const override {
    damaged_.push_back(block.block_index);
  }

  const std::vector<uint64_t>& damaged() const { return damaged_; }

 private:
  const std::shared_ptr<const BlockDecoder> decoder_;
  mutable std::vector<uint64_t> damaged_;
};

// Times at which fetches begin and are answered.
constexpr SchedulerTime kBegun = std::chrono::microseconds(10);
constexpr SchedulerTime kAnswered = std::chrono::microseconds(1000);

class DecodeTaskTest : public ::testing::Test {
 protected:
  void SetUp() override {
    QUIRE_ASSERT_OK_AND_ASSIGN(
        queue_, DriveQueue::Open(
                    {}, OpensManualDevice(device_),
                    [this](DriveQueue& queue, std::span<DeviceResult> results) {
                      std::vector<DeviceRead> repeats;
                      ended_ = queue.TakeResult({}, results[0], repeats);
                    },
                    in_flight_, memory_));
  }

  // Reads adjacent blocks, with `fault`.
  void Read(const std::vector<uint64_t>& block_indexes,
            const ReadFault& fault = nullptr) {
    BlockRun run;
    for (const uint64_t i : block_indexes) {
      BlockFetch fetch = blocks_.Fetch(i);
      decoder_ = std::make_shared<RecordingDecoder>(fetch.decoder);
      fetch.decoder = decoder_;
      InFlightBlock& block = in_flight_.Begin(std::move(fetch));
      for (int fetch_count = 0; fetch_count < 2; ++fetch_count) {
        BlockFetch joining = block.fetch;
        joining.times = times_;
        in_flight_.Join(block, joining, log_.Watch(), kBegun);
      }
      run.push_back(&block);
    }
    queue_->Enqueue({}, run);
    DriveReads reads;
    queue_->Plan({}, 1, reads);
    ASSERT_EQ(reads.size(), 1U);
    StartReads(reads, *buffers_);
    device_->Serve(fault);
    ASSERT_EQ(ended_.blocks.size(), block_indexes.size());
  }

  // Settles like the store, without a second read.
  void Settle(DecodeTask& task) {
    for (size_t i = 0; i < ended_.blocks.size(); ++i) {
      BlockOutcome& outcome = task.outcomes()[i];
      outcome.ended =
          in_flight_.EndAll(*ended_.blocks[i].block, outcome.status.ok());
    }
    memory_.Release(task.freed_size_bytes());
  }

  void ExpectText(const absl::StatusOr<BlockPtr>& block, uint64_t index) {
    QUIRE_ASSERT_OK(block);
    const std::vector<uint8_t> text = blocks_.Text(index);
    EXPECT_TRUE(std::equal(text.begin(), text.end(), (*block)->bytes().begin(),
                           (*block)->bytes().end()));
  }

  TestBlocks blocks_{32, kBlockSizeBytes};
  FetchLog log_;
  const std::shared_ptr<FetchTimes> times_ = std::make_shared<FetchTimes>();
  const std::shared_ptr<BufferPool> buffers_ = BufferPool::Create(0);
  BlockCache cache_{{.capacity_size_bytes = 8 << 20}};
  InFlightTable in_flight_;
  ReadMemory memory_{64 << 20, /*direct_io=*/false};
  ManualDevice* device_ = nullptr;
  DriveQueue::Ended ended_;
  std::unique_ptr<DriveQueue> queue_;
  std::shared_ptr<RecordingDecoder> decoder_;
};

TEST_F(DecodeTaskTest, DecodesCachesAndAnswersInThisOrder) {
  Read({2, 3});
  DecodeTask task(*ended_.read, ended_.blocks, *buffers_, cache_);
  EXPECT_EQ(cache_.Find(blocks_.Key(2), BlockCache::Use::kScan), nullptr);
  task.Decode();
  // Cached before it leaves the table, and before fetches are answered.
  EXPECT_NE(cache_.Find(blocks_.Key(2), BlockCache::Use::kScan), nullptr);
  EXPECT_NE(in_flight_.Find(blocks_.Key(2)), nullptr);
  EXPECT_EQ(log_.ended(), 0U);
  EXPECT_EQ(task.freed_size_bytes(), memory_.reserved_size_bytes());
  Settle(task);
  EXPECT_EQ(log_.ended(), 0U);
  EXPECT_EQ(memory_.reserved_size_bytes(), 0U);
  task.Answer(kAnswered);
  EXPECT_EQ(log_.ended(), 4U);
  ExpectText(log_.Get(0).result, 2);
  ExpectText(log_.Get(3).result, 3);
}

TEST_F(DecodeTaskTest, TheBufferIsFreeAfterTheLastTaskOfARead) {
  Read({2, 3});
  const std::span<const ReadBlock> blocks = ended_.blocks;
  DecodeTask first(*ended_.read, blocks.first(1), *buffers_, cache_);
  first.Decode();
  const uint64_t work_size_bytes = WorkSizeBytes(blocks[0].block->fetch);
  EXPECT_EQ(first.freed_size_bytes(), work_size_bytes);
  DecodeTask second(*ended_.read, blocks.last(1), *buffers_, cache_);
  second.Decode();
  EXPECT_GT(second.freed_size_bytes(), work_size_bytes);
  EXPECT_EQ(first.freed_size_bytes() + second.freed_size_bytes(),
            memory_.reserved_size_bytes());
}

TEST_F(DecodeTaskTest, ADamagedBlockIsNotedBeforeItsFetchesAreTold) {
  Read({5}, [](const DeviceRead& read, DeviceResult& /*result*/) {
    read.buffer[100] ^= 1;
  });
  DecodeTask task(*ended_.read, ended_.blocks, *buffers_, cache_);
  task.Decode();
  EXPECT_TRUE(task.outcomes()[0].is_damaged);
  EXPECT_EQ(cache_.Find(blocks_.Key(5), BlockCache::Use::kScan), nullptr);
  EXPECT_TRUE(decoder_->damaged().empty());
  Settle(task);
  task.Answer(kAnswered);
  EXPECT_THAT(decoder_->damaged(), ElementsAre(5));
  EXPECT_THAT(log_.Get(0).result, HasCode(absl::StatusCode::kDataLoss));
}

TEST_F(DecodeTaskTest, ABlockThatIsReadAgainIsNotAnswered) {
  Read({5}, [](const DeviceRead& read, DeviceResult& /*result*/) {
    read.buffer[100] ^= 1;
  });
  DecodeTask task(*ended_.read, ended_.blocks, *buffers_, cache_);
  task.Decode();
  ASSERT_TRUE(in_flight_.ReturnToQueue(*ended_.blocks[0].block));
  task.Answer(kAnswered);
  EXPECT_EQ(log_.ended(), 0U);
  EXPECT_TRUE(decoder_->damaged().empty());
}

TEST_F(DecodeTaskTest, ABlockPastTheEndOfItsFileIsNotedAndNotReadAgain) {
  Read({5}, [](const DeviceRead& /*read*/, DeviceResult& result) {
    result.size_bytes = 10;
    result.status = absl::DataLossError("the file ends");
  });
  DecodeTask task(*ended_.read, ended_.blocks, *buffers_, cache_);
  task.Decode();
  EXPECT_FALSE(task.outcomes()[0].is_damaged);
  EXPECT_EQ(task.freed_size_bytes(), memory_.reserved_size_bytes());
  Settle(task);
  task.Answer(kAnswered);
  EXPECT_THAT(decoder_->damaged(), ElementsAre(5));
  EXPECT_THAT(log_.Get(1).result, HasCode(absl::StatusCode::kDataLoss));
  EXPECT_EQ(blocks_.DecodeCount(5), 0U);
}

TEST_F(DecodeTaskTest, SaysWhatFetchesWaitedFor) {
  using std::chrono::microseconds;
  Read({7});
  InFlightBlock& block = *ended_.blocks[0].block;
  block.dispatched = microseconds(110);
  block.read_ended = microseconds(410);
  // One that came while the block was being read, and one that came later.
  for (const int begun_us : {310, 510}) {
    in_flight_.Join(block, block.fetch, log_.Watch(), microseconds(begun_us));
    block.waiters.back().times = times_;
  }
  DecodeTask task(*ended_.read, ended_.blocks, *buffers_, cache_);
  task.Decode();
  Settle(task);
  task.Answer(kAnswered);
  // Two have begun at 10.
  EXPECT_EQ(times_->fetch_count(), 4U);
  EXPECT_EQ(times_->sum().queue, microseconds(2 * 100));
  EXPECT_EQ(times_->sum().device, microseconds(2 * 300 + 100));
  EXPECT_EQ(times_->sum().decode, microseconds(3 * 590 + 490));
}

}  // namespace
}  // namespace quire
