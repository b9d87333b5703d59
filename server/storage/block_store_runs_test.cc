// SPDX-License-Identifier: GPL-3.0-or-later
//
// Tests blocks that are queued as one request, and the events that split them.
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

#include "server/storage/block_store.h"
#include "testing/base/status_matchers.h"
#include "testing/storage/storage_test_util.h"

namespace quire {
namespace {

// Six of them are a run; a gap of one block is not read through.
constexpr uint32_t kRunBlockSize = 20'000;
constexpr uint64_t kSecondSource = 99;

class BlockRunsTest : public ::testing::Test {
 protected:
  void SetUp() override { Open(uint64_t{64} << 20); }

  void Open(uint64_t buffers_size_bytes_max) {
    const DriveInfo drive{.name = "drive", .kind = DriveKind::kSolidState};
    QUIRE_ASSERT_OK_AND_ASSIGN(
        store_,
        BlockStore::Create({.cache_size_bytes = 0,
                            .buffers_size_bytes_max = buffers_size_bytes_max,
                            .decode_threads = 1,
                            .device_depth = 1,
                            .drives = {drive}},
                           OpensManualDevice(device_)));
    // Keeps the drive busy, so that all later fetches are queued.
    store_->Fetch(blocks_.Fetch(39), log_.Watch());
    EXPECT_EQ(device_->waiting().size(), 1);
  }

  void TearDown() override {
    if (store_ != nullptr) {
      ServeAll();
      store_.reset();
    }
  }

  std::vector<BlockFetch> Fetches(std::initializer_list<uint64_t> indexes,
                                  FetchClass fetch_class) const {
    std::vector<BlockFetch> fetches;
    for (const uint64_t i : indexes) {
      fetches.push_back(blocks_.Fetch(i, fetch_class));
    }
    return fetches;
  }

  std::vector<BlockStore::FetchId> FetchAll(std::vector<BlockFetch> fetches) {
    std::vector<BlockStore::FetchItem> items;
    for (BlockFetch& fetch : fetches) {
      items.push_back({std::move(fetch), log_.Watch()});
    }
    return store_->FetchAll(std::move(items));
  }

  uint64_t requests() const {
    return store_->Stats().drives[0].queued_requests;
  }

  // Returns the first block of the read at the device, and its number of
  // blocks.
  std::pair<uint64_t, uint64_t> Reading() const {
    const std::vector<DeviceRead> waiting = device_->waiting();
    if (waiting.size() != 1) {
      return {0, 0};
    }
    return {waiting[0].offset.value / blocks_.stored_size_bytes(),
            waiting[0].buffer.size() / blocks_.stored_size_bytes()};
  }

  void ServeAll() {
    while (!device_->waiting().empty()) {
      device_->Serve();
      SettleDecoding(*store_);
    }
  }

  // Checks the text of a fetch, numbered in order of request; 0 is that of
  // SetUp().
  void ExpectText(size_t index, uint64_t block) const {
    const FetchLog::End end = log_.Get(index);
    EXPECT_EQ(end.calls, 1);
    QUIRE_ASSERT_OK(end.result.status());
    const ByteView bytes = (*end.result)->bytes();
    EXPECT_EQ(std::vector<uint8_t>(bytes.begin(), bytes.end()),
              blocks_.Text(block));
  }

  TestBlocks blocks_{40, kRunBlockSize};
  FetchLog log_;
  std::unique_ptr<BlockStore> store_;
  ManualDevice* device_ = nullptr;
};

using Pair = std::pair<uint64_t, uint64_t>;

TEST_F(BlockRunsTest, NeighboursAskedForTogetherAreOneRequest) {
  FetchAll(Fetches({5, 6, 7, 8, 9}, FetchClass::kScan));
  EXPECT_EQ(requests(), 1);
  EXPECT_EQ(store_->Stats().queued_fetches, 5);
  device_->Serve();
  EXPECT_EQ(Reading(), Pair(5, 5));
  EXPECT_EQ(requests(), 0);
  ServeAll();
  for (uint64_t i = 0; i < 5; ++i) {
    ExpectText(1 + i, 5 + i);
  }
}

TEST_F(BlockRunsTest, ARunIsNotLong) {
  FetchAll(
      Fetches({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, FetchClass::kBatch));
  EXPECT_EQ(requests(), 3);
}

TEST_F(BlockRunsTest, ARunTakesASmallPartOfTheMemory) {
  TearDown();
  // A sixteenth holds two blocks and their read.
  Open(uint64_t{96} << 10 << 4);
  FetchAll(Fetches({0, 1, 2, 3, 4, 5}, FetchClass::kScan));
  EXPECT_EQ(requests(), 3);
}

TEST_F(BlockRunsTest, WhatDiffersIsARequestOfItsOwn) {
  FetchAll(Fetches({3, 2, 1}, FetchClass::kScan));
  EXPECT_EQ(requests(), 3);
  FetchAll(Fetches({5, 7}, FetchClass::kScan));
  EXPECT_EQ(requests(), 5);
  FetchAll({blocks_.Fetch(9, FetchClass::kScan),
            blocks_.Fetch(10, FetchClass::kBatch)});
  EXPECT_EQ(requests(), 7);
  std::vector<BlockFetch> of_two = Fetches({12, 13}, FetchClass::kScan);
  of_two[1].client_id = 1;
  FetchAll(std::move(of_two));
  EXPECT_EQ(requests(), 9);
  const TestBlocks others(40, kRunBlockSize, kSecondSource);
  FetchAll({blocks_.Fetch(15), others.Fetch(16)});
  EXPECT_EQ(requests(), 11);
  ServeAll();
  EXPECT_EQ(log_.ended(), 12);
}

TEST_F(BlockRunsTest, ACancelledBlockIsNotReadAndTheOthersAre) {
  const std::vector<BlockStore::FetchId> ids =
      FetchAll(Fetches({5, 6, 7, 8, 9}, FetchClass::kScan));
  store_->Cancel(ids[2]);
  EXPECT_EQ(log_.Get(3).result.status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(requests(), 2);
  EXPECT_EQ(store_->Stats().queued_fetches, 4);
  device_->Serve();
  EXPECT_EQ(Reading(), Pair(5, 2));
  SettleDecoding(*store_);
  device_->Serve();
  EXPECT_EQ(Reading(), Pair(8, 2));
  ServeAll();
  EXPECT_EQ(blocks_.DecodeCount(7), 0);
  for (const uint64_t i : std::initializer_list<uint64_t>{0, 1, 3, 4}) {
    ExpectText(1 + i, 5 + i);
  }
}

TEST_F(BlockRunsTest, AllOfARunMayBeCancelled) {
  const std::vector<BlockStore::FetchId> ids =
      FetchAll(Fetches({5, 6, 7, 8, 9}, FetchClass::kScan));
  for (const size_t i : std::initializer_list<size_t>{4, 0, 2, 1, 3}) {
    store_->Cancel(ids[i]);
    EXPECT_EQ(log_.Get(1 + i).result.status().code(),
              absl::StatusCode::kCancelled);
  }
  EXPECT_EQ(requests(), 0);
  EXPECT_EQ(store_->Stats().queued_fetches, 0);
  ServeAll();
  EXPECT_EQ(store_->Stats().device_reads, 1);
}

TEST_F(BlockRunsTest, ABlockWithTwoWaitersIsReadThoughOneCancels) {
  const std::vector<BlockStore::FetchId> ids =
      FetchAll(Fetches({5, 6, 7}, FetchClass::kScan));
  FetchAll(Fetches({6}, FetchClass::kScan));
  store_->Cancel(ids[1]);
  EXPECT_EQ(requests(), 1);
  ServeAll();
  ExpectText(4, 6);
}

TEST_F(BlockRunsTest, OnlyTheBlockThatIsWantedSoonerGoesAhead) {
  FetchAll(Fetches({0, 1, 2, 3, 4}, FetchClass::kScan));
  FetchAll(Fetches({20, 21}, FetchClass::kBatch));
  FetchAll(Fetches({2}, FetchClass::kInteractive));
  EXPECT_EQ(requests(), 4);
  device_->Serve();
  SettleDecoding(*store_);
  // Later blocks of the run are read with it, earlier ones are not.
  EXPECT_EQ(Reading(), Pair(2, 3));
  device_->Serve();
  SettleDecoding(*store_);
  EXPECT_EQ(Reading(), Pair(20, 2));
  ServeAll();
  ExpectText(8, 2);
  EXPECT_EQ(blocks_.DecodeCount(2), 1);
}

TEST_F(BlockRunsTest, ABlockMayBeAskedForTwiceInOneStep) {
  std::vector<BlockFetch> fetches = Fetches({5, 6, 6, 7}, FetchClass::kScan);
  fetches[2].fetch_class = FetchClass::kInteractive;
  FetchAll(std::move(fetches));
  // 5, 6 and 7.
  EXPECT_EQ(requests(), 3);
  ServeAll();
  ExpectText(2, 6);
  ExpectText(3, 6);
  EXPECT_EQ(blocks_.DecodeCount(6), 1);
}

TEST_F(BlockRunsTest, RunsOfTwoSourcesMayOverlap) {
  std::vector<BlockFetch> second = Fetches({2, 3, 4, 5}, FetchClass::kScan);
  for (BlockFetch& fetch : second) {
    fetch.key.source_id = kSecondSource;
  }
  FetchAll(Fetches({0, 1, 2, 3}, FetchClass::kScan));
  FetchAll(std::move(second));
  EXPECT_EQ(requests(), 2);
  device_->Serve();
  EXPECT_EQ(Reading(), Pair(0, 6));
  // From here on it is read block by block, for both sources.
  device_->Fail(absl::UnavailableError("broken"),
                3 * blocks_.stored_size_bytes());
  ServeAll();
  for (uint64_t i = 0; i < 4; ++i) {
    ExpectText(1 + i, i);
    ExpectText(5 + i, 2 + i);
  }
}

TEST_F(BlockRunsTest, WhatIsQueuedEndsWithTheStore) {
  std::vector<BlockStore::FetchItem> items;
  for (BlockFetch& fetch : Fetches({10, 11, 12, 20}, FetchClass::kScan)) {
    items.push_back({std::move(fetch), [this, done = log_.Watch()](auto end) {
                       // The store waits for the reads at the drive.
                       if (!device_->waiting().empty()) {
                         device_->Serve();
                       }
                       done(std::move(end));
                     }});
  }
  store_->FetchAll(std::move(items));
  EXPECT_EQ(requests(), 2);
  store_.reset();
  for (size_t i = 1; i < 5; ++i) {
    const FetchLog::End end = log_.Get(i);
    EXPECT_EQ(end.calls, 1);
    EXPECT_EQ(end.result.status().code(), absl::StatusCode::kCancelled);
  }
  ExpectText(0, 39);
}

}  // namespace
}  // namespace quire
