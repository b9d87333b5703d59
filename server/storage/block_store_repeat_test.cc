// SPDX-License-Identifier: GPL-3.0-or-later
//
// Tests that blocks whose first read fails or is damaged are read once more,
// and never a third time.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "server/storage/block_store.h"
#include "testing/base/status_matchers.h"
#include "testing/storage/fault_plan.h"
#include "testing/storage/storage_test_util.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

constexpr uint32_t kRepeatBlockSize = 3000;

// Records the damaged blocks that a store reports.
class NotingDecoder final : public BlockDecoder {
 public:
  explicit NotingDecoder(std::shared_ptr<const BlockDecoder> decoder)
      : decoder_(std::move(decoder)) {}

  absl::Status Decode(BlockAddress block, ByteView stored,
                      std::span<const BlockPart> parts) const override {
    return decoder_->Decode(block, stored, parts);
  }

  void NoteDamage(BlockAddress block, const absl::Status&) const override {
    noted_.push_back(block.block_index);
  }

  // Read once the pool's only thread is idle.
  const std::vector<uint64_t>& noted() const { return noted_; }

 private:
  const std::shared_ptr<const BlockDecoder> decoder_;
  mutable std::vector<uint64_t> noted_;
};

class BlockStoreRepeatTest : public ::testing::Test {
 protected:
  void Open(BlockStoreOptions options) {
    options.decode_threads = 1;
    QUIRE_ASSERT_OK_AND_ASSIGN(
        store_, BlockStore::Create(options, OpensManualDevice(device_)));
  }

  BlockStore::FetchId Fetch(uint64_t block_index) {
    BlockFetch fetch = blocks_.Fetch(block_index);
    fetch.decoder = decoder_;
    return store_->Fetch(std::move(fetch), log_.Watch());
  }

  // Serves the oldest read, and waits for everything that follows except
  // further reads.
  void Serve(const ReadFault& fault = nullptr) {
    device_->Serve(fault);
    SettleDecoding(*store_);
  }

  void ExpectOneRead(uint64_t block_index) {
    const std::vector<DeviceRead> reads = device_->waiting();
    ASSERT_EQ(reads.size(), 1);
    EXPECT_EQ(reads[0].offset.value, blocks_.OffsetOf(block_index));
    EXPECT_EQ(reads[0].buffer.size(), blocks_.stored_size_bytes());
  }

  void ExpectText(size_t end_index, uint64_t block_index) {
    const FetchLog::End end = log_.Get(end_index);
    QUIRE_ASSERT_OK(end.result);
    EXPECT_THAT((*end.result)->bytes(),
                ElementsAreArray(blocks_.Text(block_index)));
  }

  static void Refuse(const DeviceRead&, DeviceResult& result) {
    result.size_bytes = 100;
    result.status = absl::UnavailableError("bad sector");
  }

  static void Flip(const DeviceRead& read, DeviceResult&) {
    read.buffer[100] ^= 1;
  }

  TestBlocks blocks_{48, kRepeatBlockSize, 1, 1 << 17};
  std::shared_ptr<NotingDecoder> decoder_ =
      std::make_shared<NotingDecoder>(blocks_.Fetch(0).decoder);
  FetchLog log_;
  ManualDevice* device_ = nullptr;
  std::unique_ptr<BlockStore> store_;
};

TEST_F(BlockStoreRepeatTest, ASecondReadHealsWhatPassesAway) {
  Open({});
  for (const ReadFault& fault : {ReadFault(Refuse), ReadFault(Flip)}) {
    const size_t end = log_.ended();
    Fetch(3 + end);
    Serve(fault);
    EXPECT_EQ(log_.ended(), end);
    ExpectOneRead(3 + end);
    Serve();
    ASSERT_EQ(log_.ended(), end + 1);
    ExpectText(end, 3 + end);
  }
  const BlockStoreStats stats = store_->Stats();
  EXPECT_EQ(stats.repeated_blocks, 2);
  EXPECT_EQ(stats.recovered_blocks, 2);
  EXPECT_EQ(stats.device_reads, 4);
  EXPECT_EQ(stats.device_errors, 1);
  EXPECT_EQ(stats.decode_failures, 0);
  EXPECT_EQ(stats.blocks_decoded, 2);
  EXPECT_EQ(stats.buffers_size_bytes, 0);
  EXPECT_THAT(decoder_->noted(), ElementsAre());
}

TEST_F(BlockStoreRepeatTest, ThereIsNoThirdRead) {
  const ReadFault refuse = Refuse;
  const ReadFault flip = Flip;
  const std::pair<ReadFault, ReadFault> faults[] = {
      {refuse, refuse}, {flip, flip}, {refuse, flip}, {flip, refuse}};
  Open({});
  for (const auto& [first, second] : faults) {
    Fetch(log_.ended());
    Serve(first);
    Serve(second);
    EXPECT_TRUE(device_->waiting().empty());
  }
  ASSERT_EQ(log_.ended(), 4);
  for (const size_t i : std::initializer_list<size_t>{0, 3}) {
    EXPECT_THAT(log_.Get(i).result,
                FailsWith(absl::StatusCode::kUnavailable, HasSubstr("sector")));
  }
  for (const size_t i : std::initializer_list<size_t>{1, 2}) {
    EXPECT_THAT(log_.Get(i).result,
                FailsWith(absl::StatusCode::kDataLoss, HasSubstr("checksum")));
  }
  const BlockStoreStats stats = store_->Stats();
  EXPECT_EQ(stats.repeated_blocks, 4);
  EXPECT_EQ(stats.recovered_blocks, 0);
  EXPECT_EQ(stats.decode_failures, 2);
  EXPECT_EQ(stats.device_reads, 8);
  EXPECT_EQ(stats.buffers_size_bytes, 0);
  EXPECT_THAT(decoder_->noted(), ElementsAre(1, 2));
}

TEST_F(BlockStoreRepeatTest, AFileThatEndsEarlyIsNotReadAgain) {
  Open({});
  Fetch(3);
  Serve([](const DeviceRead& read, DeviceResult& result) {
    result.size_bytes = 10;
    result.status = EndOfFileStatus(read, 10);
  });
  ASSERT_EQ(log_.ended(), 1);
  EXPECT_THAT(log_.Get(0).result, HasCode(absl::StatusCode::kDataLoss));
  const BlockStoreStats stats = store_->Stats();
  EXPECT_EQ(stats.repeated_blocks, 0);
  // The file is damaged, not the drive.
  EXPECT_EQ(stats.device_errors, 0);
  EXPECT_EQ(stats.decode_failures, 1);
  EXPECT_THAT(decoder_->noted(), ElementsAre(3));
}

TEST_F(BlockStoreRepeatTest, WhoeverAsksMeanwhileSharesTheSecondRead) {
  Open({.device_depth = 1});
  Fetch(3);
  Fetch(40);
  Serve(Flip);
  // Block 40 is at the device, 3 is queued again.
  ExpectOneRead(40);
  EXPECT_EQ(store_->Stats().queued_fetches, 1);
  Fetch(3);
  EXPECT_EQ(store_->Stats().joined_fetches, 1);
  EXPECT_EQ(store_->Stats().queued_fetches, 2);
  Serve();
  ExpectOneRead(3);
  Serve();
  ASSERT_EQ(log_.ended(), 3);
  ExpectText(0, 3);
  ExpectText(2, 3);
  EXPECT_EQ(store_->Stats().device_reads, 3);
}

TEST_F(BlockStoreRepeatTest, ASecondReadCanBeWithdrawn) {
  Open({.device_depth = 1});
  const BlockStore::FetchId id = Fetch(3);
  Fetch(40);
  Serve(Flip);
  store_->Cancel(id);
  EXPECT_THAT(log_.Get(0).result, HasCode(absl::StatusCode::kCancelled));
  Serve();
  EXPECT_TRUE(device_->waiting().empty());
  EXPECT_EQ(store_->Stats().queued_fetches, 0);
  // Afterwards it is a block like any other.
  Fetch(3);
  Serve(Flip);
  Serve();
  ASSERT_EQ(log_.ended(), 3);
  ExpectText(2, 3);
}

TEST_F(BlockStoreRepeatTest, OnlyTheDamagedBlockOfAReadIsReadAgain) {
  TestBlocks neighbours(4, kRepeatBlockSize);
  Open({});
  std::vector<BlockStore::FetchItem> items;
  for (uint64_t i = 0; i < neighbours.count(); ++i) {
    items.push_back({neighbours.Fetch(i), log_.Watch()});
  }
  store_->FetchAll(std::move(items));
  ASSERT_EQ(device_->waiting().size(), 1);
  Serve([&neighbours](const DeviceRead& read, DeviceResult&) {
    read.buffer[2 * neighbours.stored_size_bytes()] ^= 1;
  });
  EXPECT_EQ(log_.ended(), 3);
  ASSERT_EQ(device_->waiting().size(), 1);
  EXPECT_EQ(device_->waiting()[0].offset.value, neighbours.OffsetOf(2));
  Serve();
  ASSERT_EQ(log_.ended(), 4);
  for (size_t i = 0; i < 4; ++i) {
    QUIRE_EXPECT_OK(log_.Get(i).result);
  }
}

// The error may lie in a gap between the two blocks.
TEST_F(BlockStoreRepeatTest, ASecondReadThatIsSharedMayFailForOthers) {
  TestBlocks neighbours(16, kRepeatBlockSize);
  Open({.device_depth = 1});
  const auto fetch = [&](uint64_t block_index) {
    store_->Fetch(neighbours.Fetch(block_index), log_.Watch());
  };
  fetch(2);
  fetch(9);
  Serve(Flip);
  fetch(0);
  Serve();
  ASSERT_EQ(device_->waiting().size(), 1);
  EXPECT_EQ(device_->waiting()[0].offset.value, 0);
  EXPECT_EQ(device_->waiting()[0].buffer.size(),
            3 * neighbours.stored_size_bytes());
  Serve([&neighbours](const DeviceRead&, DeviceResult& result) {
    result.size_bytes = neighbours.stored_size_bytes() + 10;
    result.status = absl::UnavailableError("bad sector");
  });
  ASSERT_EQ(device_->waiting().size(), 1);
  EXPECT_EQ(device_->waiting()[0].offset.value, neighbours.OffsetOf(2));
  Serve();
  ASSERT_EQ(log_.ended(), 3);
  for (size_t i = 0; i < 3; ++i) {
    QUIRE_EXPECT_OK(log_.Get(i).result);
  }
  EXPECT_EQ(store_->Stats().repeated_blocks, 1);
}

// The plan determines the faults of a block and of each of its reads (odd:
// spared), and thus the number of reads and the fetch's result.
TEST_F(BlockStoreRepeatTest, EndsAsThePlanOfFaultsSays) {
  Open({.cache_size_bytes = 0});
  uint64_t recovered = 0;
  const std::vector<uint64_t> seeds = SimulationSeeds(6);
  for (const uint64_t seed : seeds) {
    const FaultPlan plan(seed, blocks_.count(), blocks_.stored_size_bytes(),
                         blocks_.OffsetOf(1));
    for (uint64_t block = 0; block < blocks_.count(); ++block) {
      const BlockFault fault = plan.FaultOf(block);
      for (uint64_t draw = 0; draw < 4; ++draw) {
        const bool lasts =
            fault == BlockFault::kUnreadable || fault == BlockFault::kFlipped;
        const bool passes =
            fault == BlockFault::kWeak || fault == BlockFault::kCorrupted;
        const bool first_is_bad = lasts || (passes && draw % 2 == 0);
        const bool ends_well =
            fault == BlockFault::kNone || (passes && draw > 0);
        const size_t end = log_.ended();
        Fetch(block);
        uint64_t reads = 0;
        for (; !device_->waiting().empty(); ++reads) {
          Serve([&](const DeviceRead& read, DeviceResult& result) {
            plan.Apply(read, draw >> reads, result);
          });
        }
        ASSERT_EQ(reads, first_is_bad ? 2 : 1) << HowToRepeat(seed);
        ASSERT_EQ(log_.ended(), end + 1) << HowToRepeat(seed);
        const absl::Status status = log_.Get(end).result.status();
        ASSERT_EQ(status.ok(), ends_well) << HowToRepeat(seed);
        ASSERT_TRUE(plan.Allows(block, status.code())) << HowToRepeat(seed);
        recovered += first_is_bad && ends_well ? 1 : 0;
      }
    }
  }
  EXPECT_EQ(store_->Stats().recovered_blocks, recovered);
  if (seeds.size() > 1) {
    EXPECT_GT(recovered, 0);
  }
}

}  // namespace
}  // namespace quire
