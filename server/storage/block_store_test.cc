// SPDX-License-Identifier: GPL-3.0-or-later
//
// Tests the store over real engines, and step by step over a device that the
// test controls.
#include "server/storage/block_store.h"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "testing/base/status_matchers.h"
#include "testing/storage/storage_test_util.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

constexpr uint32_t kBlockSize = 8 << 10;

class EngineTest : public ::testing::TestWithParam<BlockStoreOptions::Engine> {
};

TEST_P(EngineTest, FetchesEachBlockOnceAndThenFindsItInTheCache) {
  TestBlocks blocks(64, kBlockSize);
  BlockStoreOptions options;
  options.engine = GetParam();
  options.decode_threads = 1;
  QUIRE_ASSERT_OK_AND_ASSIGN(auto store, BlockStore::Create(options));
  FetchLog log;
  for (int round = 0; round < 2; ++round) {
    for (uint64_t i = 0; i < blocks.count(); ++i) {
      EXPECT_EQ(store->Fetch(blocks.Fetch(i), log.Watch()) == 0, round == 1);
    }
    log.WaitForAll();
  }
  for (uint64_t i = 0; i < 2 * blocks.count(); ++i) {
    const FetchLog::End end = log.Get(i);
    EXPECT_EQ(end.calls, 1);
    QUIRE_ASSERT_OK(end.result);
    EXPECT_THAT((*end.result)->bytes(),
                ElementsAreArray(blocks.Text(i % blocks.count())));
  }
  SettleDecoding(*store);
  const BlockStoreStats stats = store->Stats();
  EXPECT_EQ(stats.cache_hits, 64);
  EXPECT_EQ(stats.cache_misses, 64);
  EXPECT_EQ(stats.blocks_decoded, 64);
  EXPECT_EQ(stats.decoded_bytes, 64 * kBlockSize);
  EXPECT_EQ(stats.cache_blocks, 64);
  EXPECT_GE(stats.device_read_bytes, 64 * blocks.stored_size_bytes());
  EXPECT_EQ(stats.queued_fetches, 0);
  EXPECT_EQ(stats.device_reads_in_flight, 0);
  EXPECT_EQ(stats.buffers_size_bytes, 0);
}

TEST_P(EngineTest, ReturnsTheMemoryOfACacheThatShrinks) {
  TestBlocks blocks(64, kBlockSize);
  BlockStoreOptions options;
  options.engine = GetParam();
  options.buffers_size_bytes_max = 64 << 10;
  options.decode_threads = 1;
  QUIRE_ASSERT_OK_AND_ASSIGN(auto store, BlockStore::Create(options));
  {
    FetchLog log;
    for (uint64_t i = 0; i < blocks.count(); ++i) {
      store->Fetch(blocks.Fetch(i), log.Watch());
    }
    log.WaitForAll();
  }
  // The thread that delivered the last block may still hold it.
  SettleDecoding(*store);
  store->ResizeCache(0);
  EXPECT_EQ(store->buffers().used_size_bytes(), 0);
  EXPECT_LE(store->buffers().idle_size_bytes(), options.buffers_size_bytes_max);
}

TEST_P(EngineTest, ServesWhatIsLeftOfATruncatedFile) {
  TestBlocks blocks(16, kBlockSize);
  blocks.file().Truncate(blocks.OffsetOf(10) + 100);
  BlockStoreOptions options;
  options.engine = GetParam();
  QUIRE_ASSERT_OK_AND_ASSIGN(auto store, BlockStore::Create(options));
  FetchLog log;
  std::vector<BlockStore::FetchItem> items;
  for (uint64_t i = 0; i < blocks.count(); ++i) {
    items.push_back({blocks.Fetch(i), log.Watch()});
  }
  store->FetchAll(std::move(items));
  log.WaitForAll();
  for (uint64_t i = 0; i < blocks.count(); ++i) {
    if (i < 10) {
      QUIRE_EXPECT_OK(log.Get(i).result);
    } else {
      EXPECT_THAT(
          log.Get(i).result,
          FailsWith(absl::StatusCode::kDataLoss,
                    AllOf(HasSubstr(absl::StrCat(
                              "byte ", blocks.Fetch(i).extent.offset.value)),
                          HasSubstr("file ends early"))));
    }
  }
}

TEST_P(EngineTest, EndsAllFetchesWhenDestroyed) {
  TestBlocks blocks(512, kBlockSize);
  BlockStoreOptions options;
  options.engine = GetParam();
  options.device_depth = 2;
  FetchLog log;
  BlockStore::BlockPtr kept;
  {
    QUIRE_ASSERT_OK_AND_ASSIGN(auto store, BlockStore::Create(options));
    for (uint64_t i = 0; i < blocks.count(); ++i) {
      store->Fetch(blocks.Fetch(i), log.Watch());
    }
    log.WaitFor(0);
    QUIRE_ASSERT_OK_AND_ASSIGN(kept, log.Get(0).result);
  }
  ASSERT_EQ(log.ended(), blocks.count());
  for (uint64_t i = 0; i < blocks.count(); ++i) {
    const FetchLog::End end = log.Get(i);
    EXPECT_EQ(end.calls, 1);
    EXPECT_TRUE(end.result.ok() || absl::IsCancelled(end.result.status()))
        << end.result.status();
  }
  EXPECT_THAT(kept->bytes(), ElementsAreArray(blocks.Text(0)));
}

INSTANTIATE_TEST_SUITE_P(Engines, EngineTest,
                         ::testing::Values(BlockStoreOptions::Engine::kAuto,
                                           BlockStoreOptions::Engine::kPread),
                         [](const auto& param_info) {
                           return param_info.param ==
                                          BlockStoreOptions::Engine::kAuto
                                      ? "Auto"
                                      : "Pread";
                         });

class ManualTest : public ::testing::Test {
 protected:
  void Open(const BlockStoreOptions& options) {
    QUIRE_ASSERT_OK_AND_ASSIGN(
        store_, BlockStore::Create(options, OpensManualDevice(device_)));
  }

  // Fetches without a Lookup() before: the device holds the read.
  BlockStore::FetchId Fetch(const BlockFetch& fetch) {
    return store_->Fetch(fetch, log_.Watch());
  }

  void ServeAll() {
    while (!device_->waiting().empty()) {
      device_->Serve();
    }
  }

  FetchLog log_;
  ManualDevice* device_ = nullptr;
  std::unique_ptr<BlockStore> store_;
};

TEST_F(ManualTest, JoinsFetchesOfOneBlock) {
  TestBlocks blocks(4, kBlockSize);
  Open({});
  std::vector<BlockStore::FetchId> ids;
  ids.reserve(5);
  for (int i = 0; i < 5; ++i) {
    ids.push_back(Fetch(blocks.Fetch(2)));
  }
  EXPECT_EQ(device_->waiting().size(), 1);
  EXPECT_EQ(store_->Stats().joined_fetches, 4);
  EXPECT_EQ(store_->Stats().cache_misses, 5);
  // Its read has started: it is no longer withdrawn.
  store_->Cancel(ids[1]);
  EXPECT_EQ(log_.ended(), 0);
  device_->Serve();
  log_.WaitForAll();
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(log_.Get(i).calls, 1);
    QUIRE_EXPECT_OK(log_.Get(i).result);
  }
  EXPECT_EQ(blocks.DecodeCount(2), 1);
  store_->Cancel(ids[1]);
  EXPECT_EQ(store_->Stats().cancelled_fetches, 0);
}

TEST_F(ManualTest, CancelsWhatStillQueues) {
  TestBlocks blocks(8, kBlockSize, 1, 1 << 20);
  Open({.device_depth = 1});
  Fetch(blocks.Fetch(0));
  const BlockStore::FetchId alone = Fetch(blocks.Fetch(1));
  const BlockStore::FetchId shared = Fetch(blocks.Fetch(2));
  Fetch(blocks.Fetch(2));
  EXPECT_EQ(store_->Stats().queued_fetches, 3);
  store_->Cancel(alone);
  store_->Cancel(shared);
  store_->Cancel(shared);
  EXPECT_THAT(log_.Get(1).result, HasCode(absl::StatusCode::kCancelled));
  EXPECT_THAT(log_.Get(2).result, HasCode(absl::StatusCode::kCancelled));
  EXPECT_EQ(store_->Stats().queued_fetches, 1);
  ServeAll();
  log_.WaitForAll();
  QUIRE_EXPECT_OK(log_.Get(0).result);
  QUIRE_EXPECT_OK(log_.Get(3).result);
  EXPECT_EQ(blocks.DecodeCount(1), 0);
  EXPECT_EQ(store_->Stats().cancelled_fetches, 2);
  EXPECT_EQ(store_->Stats().device_reads, 2);
  // It can be fetched again.
  Fetch(blocks.Fetch(1));
  ServeAll();
  log_.WaitForAll();
  QUIRE_EXPECT_OK(log_.Get(4).result);
}

TEST_F(ManualTest, ReadsNeighboursTogether) {
  TestBlocks blocks(64, kBlockSize);
  Open({});
  std::vector<BlockStore::FetchItem> items;
  for (const uint64_t i : std::vector<uint64_t>{7, 5, 6, 9, 40}) {
    items.push_back({blocks.Fetch(i), log_.Watch()});
  }
  store_->FetchAll(std::move(items));
  const std::vector<DeviceRead> reads = device_->waiting();
  ASSERT_EQ(reads.size(), 2);
  EXPECT_EQ(reads[0].offset.value, blocks.OffsetOf(5));
  EXPECT_EQ(reads[0].buffer.size(), 5 * blocks.stored_size_bytes());
  EXPECT_EQ(reads[1].offset.value, blocks.OffsetOf(40));
  ServeAll();
  log_.WaitForAll();
  EXPECT_THAT((*log_.Get(3).result)->bytes(), ElementsAreArray(blocks.Text(9)));
  EXPECT_EQ(blocks.DecodeCount(8), 0);
}

TEST_F(ManualTest, ConfinesADeviceErrorToTheBlocksThatHaveIt) {
  TestBlocks blocks(6, kBlockSize);
  Open({});
  std::vector<BlockStore::FetchItem> items;
  for (uint64_t i = 0; i < blocks.count(); ++i) {
    items.push_back({blocks.Fetch(i), log_.Watch()});
  }
  store_->FetchAll(std::move(items));
  ASSERT_EQ(device_->waiting().size(), 1);
  // Blocks 0 and 1 are complete; the fault lies in 2 or later.
  const uint32_t size_bytes = blocks.stored_size_bytes();
  device_->Fail(absl::UnavailableError("bad sector"), 2 * size_bytes + 17);
  ASSERT_EQ(device_->waiting().size(), 1);
  EXPECT_EQ(device_->waiting()[0].offset.value, blocks.OffsetOf(2));
  EXPECT_EQ(device_->waiting()[0].buffer.size(), size_bytes);
  device_->Serve();
  // Block 3, twice.
  device_->Fail(absl::UnavailableError("bad sector"));
  device_->Fail(absl::UnavailableError("bad sector"));
  ServeAll();
  log_.WaitForAll();
  for (uint64_t i = 0; i < blocks.count(); ++i) {
    if (i == 3) {
      EXPECT_THAT(
          log_.Get(i).result,
          FailsWith(absl::StatusCode::kUnavailable,
                    AllOf(HasSubstr(absl::StrCat(
                              "byte ", blocks.Fetch(3).extent.offset.value)),
                          HasSubstr("sector"))));
    } else {
      QUIRE_EXPECT_OK(log_.Get(i).result);
    }
  }
  const BlockStoreStats stats = store_->Stats();
  EXPECT_EQ(stats.device_reads, 6);
  EXPECT_EQ(stats.device_errors, 3);
  EXPECT_EQ(stats.decode_failures, 0);
  EXPECT_EQ(stats.buffers_size_bytes, 0);
}

TEST_F(ManualTest, DoesNotCacheWhatDoesNotDecode) {
  TestBlocks blocks(2, kBlockSize);
  Open({.decode_threads = 1});
  BlockFetch misplaced = blocks.Fetch(0);
  misplaced.extent = blocks.Fetch(1).extent;
  for (size_t i = 0; i < 2; ++i) {
    Fetch(misplaced);
    Fetch(misplaced);
    device_->Serve();
    SettleDecoding(*store_);
    device_->Serve();
    log_.WaitForAll();
    for (const size_t end : {2 * i, 2 * i + 1}) {
      EXPECT_THAT(log_.Get(end).result, FailsWith(absl::StatusCode::kDataLoss,
                                                  HasSubstr("checksum")));
    }
  }
  EXPECT_EQ(store_->Stats().decode_failures, 2);
  EXPECT_EQ(store_->Stats().cache_blocks, 0);
  Fetch(blocks.Fetch(0));
  device_->Serve();
  log_.WaitForAll();
  QUIRE_EXPECT_OK(log_.Get(4).result);
}

TEST_F(ManualTest, StaysWithinItsBuffers) {
  TestBlocks blocks(32, kBlockSize, 1, 1 << 20);
  // Each read takes 12 KiB of buffer and 8 KiB of text: four fit.
  Open({.cache_size_bytes = 0, .buffers_size_bytes_max = 96 << 10});
  for (uint64_t i = 0; i < blocks.count(); ++i) {
    Fetch(blocks.Fetch(i));
  }
  for (uint64_t left = blocks.count(); left > 0; --left) {
    EXPECT_EQ(device_->waiting().size(), std::min<uint64_t>(left, 4));
    EXPECT_LE(store_->Stats().buffers_size_bytes, 96 << 10);
    device_->Serve();
    // Served in order; the next read starts before the callback runs.
    log_.WaitFor(blocks.count() - left);
  }
  EXPECT_EQ(store_->Stats().buffers_size_bytes, 0);
}

TEST_F(ManualTest, ReadsABlockLargerThanItsBuffersAlone) {
  TestBlocks blocks(3, kBlockSize);
  Open({.buffers_size_bytes_max = 1});
  for (uint64_t i = 0; i < blocks.count(); ++i) {
    Fetch(blocks.Fetch(i));
  }
  for (uint64_t i = 0; i < blocks.count(); ++i) {
    ASSERT_EQ(device_->waiting().size(), 1);
    device_->Serve();
    log_.WaitFor(i);
    QUIRE_EXPECT_OK(log_.Get(i).result);
  }
}

TEST_F(ManualTest, RefusesWhatIsTooMuchOrMakesNoSense) {
  TestBlocks blocks(8, kBlockSize, 1, 1 << 20);
  Open({.pending_fetches_max = 2, .device_depth = 1});
  Fetch(blocks.Fetch(0));
  Fetch(blocks.Fetch(1));
  EXPECT_EQ(Fetch(blocks.Fetch(1)), 0);
  EXPECT_EQ(Fetch(blocks.Fetch(2)), 0);
  EXPECT_THAT(log_.Get(2).result,
              HasCode(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(log_.Get(3).result,
              HasCode(absl::StatusCode::kResourceExhausted));
  ServeAll();
  log_.WaitFor(0);
  ServeAll();
  log_.WaitForAll();
  BlockFetch no_decoder = blocks.Fetch(4);
  no_decoder.decoder = nullptr;
  BlockFetch empty = blocks.Fetch(4);
  empty.extent.size_bytes = 0;
  BlockFetch overflow = blocks.Fetch(4);
  overflow.extent.offset.value = ~uint64_t{0} - 5;
  size_t end = 4;
  for (const BlockFetch& fetch : {no_decoder, empty, overflow}) {
    EXPECT_EQ(Fetch(fetch), 0);
    EXPECT_THAT(log_.Get(end++).result,
                HasCode(absl::StatusCode::kInvalidArgument));
  }
  EXPECT_TRUE(device_->waiting().empty());
}

TEST_F(ManualTest, AnInteractiveFetchPullsTheScanItJoinsForward) {
  TestBlocks blocks(8, kBlockSize, 1, 1 << 20);
  Open({.device_depth = 1});
  Fetch(blocks.Fetch(0));
  Fetch(blocks.Fetch(1, FetchClass::kScan));
  Fetch(blocks.Fetch(2, FetchClass::kScan));
  Fetch(blocks.Fetch(2, FetchClass::kInteractive));
  device_->Serve();
  ASSERT_EQ(device_->waiting().size(), 1);
  EXPECT_EQ(device_->waiting()[0].offset.value, blocks.OffsetOf(2));
  ServeAll();
  log_.WaitForAll();
}

TEST_F(ManualTest, ACallbackMayFetchAndCancel) {
  TestBlocks blocks(8, kBlockSize, 1, 1 << 20);
  Open({.device_depth = 1});
  Fetch(blocks.Fetch(0));
  const BlockStore::FetchId doomed = store_->Fetch(
      blocks.Fetch(1), [this, &blocks, done = log_.Watch()](const auto& end) {
        Fetch(blocks.Fetch(2));
        done(end);
      });
  store_->Cancel(doomed);
  ServeAll();
  log_.WaitFor(0);
  ServeAll();
  log_.WaitForAll();
  EXPECT_THAT(log_.Get(1).result, HasCode(absl::StatusCode::kCancelled));
  QUIRE_EXPECT_OK(log_.Get(2).result);
}

TEST(BlockStoreCreateTest, RefusesSenselessOptions) {
  EXPECT_THAT(BlockStore::Create({.device_depth = 0}),
              HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(BlockStore::Create({.device_depth = kDeviceDepthMax + 1}),
              HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(BlockStore::Create({.pending_fetches_max = 0}),
              HasCode(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace quire
