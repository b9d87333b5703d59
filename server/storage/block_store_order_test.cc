// SPDX-License-Identifier: GPL-3.0-or-later
//
// Tests the order of the store's reads, and fairness between clients.
#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "server/storage/block_store.h"
#include "testing/base/status_matchers.h"
#include "testing/storage/storage_test_util.h"

namespace quire {
namespace {

// Accepts any stored bytes.
class AnyBytes final : public BlockDecoder {
 public:
  absl::Status Decode(BlockAddress /*block*/, ByteView /*stored*/,
                      std::span<const BlockPart> /*parts*/) const override {
    return absl::OkStatus();
  }
};

// A large sparse file, in blocks that lie too far apart to be read together.
class SparseBlocks {
 public:
  static constexpr uint64_t kDistanceBytes = 128 << 10;

  explicit SparseBlocks(uint64_t count) : file_({}) {
    file_.Truncate(count * kDistanceBytes);
  }

  BlockFetch Fetch(uint64_t block_index, FetchClass fetch_class,
                   uint64_t client_id) const {
    return {.key = {.source_id = 1, .block = {0, block_index}},
            .extent = {.fd = file_.fd(),
                       .offset = FileOffset{block_index * kDistanceBytes},
                       .size_bytes = 512},
            .raw_size_bytes = 512,
            .fetch_class = fetch_class,
            .client_id = client_id,
            .decoder = decoder_};
  }

 private:
  TempFile file_;
  std::shared_ptr<const BlockDecoder> decoder_ = std::make_shared<AnyBytes>();
};

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

constexpr uint64_t kMany = 5'000;
constexpr uint64_t kFew = 5;
// Space for 56 blocks read but not decoded.
constexpr uint64_t kBuffersSizeBytes = 512 << 10;
// The blocks in the buffers, 64 and two for each of two clients' five until the
// first of the few is overdue, and one overdue read in four.
constexpr uint64_t kBeforeTheFewMax = 56 + 64 + 20 + 4 * kFew + 10;

class ManyAndFewTest : public ::testing::TestWithParam<FetchClass> {
 protected:
  // Client 1 fetches all blocks except the first few. Client 2 fetches those
  // later, when the sweep has passed them. Waits until both have them. Returns
  // how many of client 1's blocks arrived between client 2's request and its
  // last block.
  uint64_t Run(BlockStore& store, const std::function<void()>& serve) {
    std::vector<BlockStore::FetchItem> many;
    for (uint64_t i = 0; i < kMany; ++i) {
      many.push_back({blocks_.Fetch(kFew + i, GetParam(), 1),
                      [this, done = log_.Watch()](const auto& end) {
                        ++many_ended_;
                        done(end);
                      }});
    }
    store.FetchAll(std::move(many));
    for (uint64_t i = 0; i < kFew; ++i) {
      store.Fetch(blocks_.Fetch(i, GetParam(), 2),
                  [this, done = log_.Watch()](const auto& end) {
                    many_before_few_ = many_ended_.load();
                    done(end);
                  });
    }
    const uint64_t many_before_asking = many_ended_;
    serve();
    if (::testing::Test::HasFatalFailure()) {
      return 0;
    }
    log_.WaitForAll();
    for (uint64_t i = 0; i < kMany + kFew; ++i) {
      EXPECT_TRUE(log_.Get(i).result.ok());
    }
    // The few may have been faster than this thread.
    return many_before_few_ -
           std::min<uint64_t>(many_before_few_, many_before_asking);
  }

  SparseBlocks blocks_{kMany + kFew};
  std::atomic<uint64_t> many_ended_ = 0;
  std::atomic<uint64_t> many_before_few_ = 0;
  FetchLog log_;
};

TEST_P(ManyAndFewTest, AFewDoNotWaitForAnothersBacklog) {
  ManualDevice* device = nullptr;
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto store,
      BlockStore::Create({.cache_size_bytes = 0,
                          .buffers_size_bytes_max = kBuffersSizeBytes,
                          .decode_threads = 1},
                         OpensManualDevice(device)));
  const uint64_t before = Run(*store, [&] {
    for (uint64_t served = 0; served < kMany + kFew; ++served) {
      // The next read starts when the served one has been decoded. If a
      // scheduler withholds a read, fail instead of spinning.
      SettleDecoding(*store);
      ASSERT_FALSE(device->waiting().empty())
          << "nothing is read after " << served << " reads";
      device->Serve();
    }
    SettleDecoding(*store);
  });
  EXPECT_LE(before, kBeforeTheFewMax);
}

INSTANTIATE_TEST_SUITE_P(Classes, ManyAndFewTest,
                         ::testing::Values(FetchClass::kInteractive,
                                           FetchClass::kBatch,
                                           FetchClass::kScan));

class ModelledManyAndFewTest : public ManyAndFewTest {};

TEST_P(ModelledManyAndFewTest, AFewDoNotWaitForAnothersBacklog) {
  // One at a time, so that no thread overtakes another.
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto store,
      BlockStore::Create({.cache_size_bytes = 0,
                          .buffers_size_bytes_max = kBuffersSizeBytes,
                          .decode_threads = 1,
                          .device_depth = 1,
                          .device_model = "table1-ssd"}));
  EXPECT_LE(Run(*store, [] {}), kBeforeTheFewMax);
}

INSTANTIATE_TEST_SUITE_P(Classes, ModelledManyAndFewTest,
                         ::testing::Values(FetchClass::kBatch));

TEST(DecodingTurnsTest, ClientsTakeTurns) {
  const SparseBlocks blocks(10);
  FetchLog log;
  std::vector<uint64_t> order;
  std::promise<void> go_on;
  ManualDevice* device = nullptr;
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto store,
      BlockStore::Create({.cache_size_bytes = 0, .decode_threads = 1},
                         OpensManualDevice(device)));
  store->decode_pool().Add(
      {.run = [went_on = go_on.get_future().share()] { went_on.wait(); }});
  for (uint64_t i = 0; i < 10; ++i) {
    const uint64_t client_id = i < 8 ? 1 : 2;
    BlockFetch fetch = blocks.Fetch(i, FetchClass::kInteractive, client_id);
    fetch.raw_size_bytes = 64 << 10;
    store->Fetch(fetch,
                 [&order, client_id, done = log.Watch()](const auto& end) {
                   order.push_back(client_id);
                   done(end);
                 });
  }
  while (!device->waiting().empty()) {
    device->Serve();
  }
  go_on.set_value();
  log.WaitForAll();
  EXPECT_THAT(order, ElementsAre(1, 2, 1, 2, 1, 1, 1, 1, 1, 1));
}

// Stores over drives that the test controls.
class DrivesTest : public ::testing::Test {
 protected:
  void Open(BlockStoreOptions options) {
    options.cache_size_bytes = 0;
    // So that SettleDecoding() leaves no work.
    options.decode_threads = 1;
    auto store = BlockStore::Create(options, [this](Device::Done done) {
      auto device = std::make_unique<ManualDevice>(std::move(done));
      devices_.push_back(device.get());
      return OpenedDevice{std::move(device), ""};
    });
    QUIRE_ASSERT_OK(store);
    store_ = *std::move(store);
  }

  static std::shared_ptr<const FilePlacement> Placed(
      const std::string& drive, const std::vector<ExtentMap::Run>& runs = {}) {
    FilePlacement placement;
    placement.place.drive.name = drive;
    placement.extents = ExtentMap(runs);
    return std::make_shared<const FilePlacement>(std::move(placement));
  }

  // Fetches all blocks of the file together.
  void FetchAll(const TestBlocks& blocks,
                const std::shared_ptr<const FilePlacement>& placement) {
    std::vector<BlockStore::FetchItem> items;
    for (uint64_t i = 0; i < blocks.count(); ++i) {
      items.push_back({blocks.Fetch(i), log_.Watch()});
      items.back().fetch.placement = placement;
    }
    store_->FetchAll(std::move(items));
  }

  // Returns the reads at the device once all earlier reads are decoded.
  std::vector<DeviceRead> ReadsAt(const ManualDevice& device) {
    SettleDecoding(*store_);
    return device.waiting();
  }

  // Serves reads in turn, at most `count`; returns their offsets.
  std::vector<uint64_t> ServeInTurn(ManualDevice& device, size_t count) {
    std::vector<uint64_t> offsets;
    while (offsets.size() < count) {
      const std::vector<DeviceRead> reads = ReadsAt(device);
      if (reads.empty()) {
        ADD_FAILURE() << "nothing is read after " << offsets.size() << " of "
                      << count << " reads";
        break;
      }
      offsets.push_back(reads[0].offset.value);
      device.Serve();
    }
    SettleDecoding(*store_);
    return offsets;
  }

  void ExpectTexts(const TestBlocks& blocks, size_t first_fetch) {
    for (uint64_t i = 0; i < blocks.count(); ++i) {
      const FetchLog::End end = log_.Get(first_fetch + i);
      QUIRE_ASSERT_OK(end.result);
      EXPECT_THAT((*end.result)->bytes(), ElementsAreArray(blocks.Text(i)));
    }
  }

  FetchLog log_;
  std::vector<ManualDevice*> devices_;
  std::unique_ptr<BlockStore> store_;
};

TEST_F(DrivesTest, ReadsInPhysicalOrderAndNotOverBreaks) {
  TestBlocks blocks(8, 4'088);
  ASSERT_EQ(blocks.stored_size_bytes(), 4'096);
  Open({.device_depth = 1, .drives = {{.name = "a"}}});
  // Pairs of blocks, the last pair first.
  FetchAll(blocks, Placed("a", {{{0}, 8'192, 300'000},
                                {{8'192}, 8'192, 200'000},
                                {{16'384}, 8'192, 100'000},
                                {{24'576}, 8'192, 0}}));
  ASSERT_EQ(devices_[0]->waiting().size(), 1);
  EXPECT_EQ(devices_[0]->waiting()[0].buffer.size(), 8'192);
  EXPECT_THAT(ServeInTurn(*devices_[0], 4),
              ElementsAre(24'576, 16'384, 8'192, 0));
  SettleDecoding(*store_);
  ExpectTexts(blocks, 0);
}

TEST_F(DrivesTest, ABlockOverABreakIsReadAlone) {
  TestBlocks blocks(4, 4'088);
  Open({.drives = {{.name = "a"}}});
  // The boundary is in the middle of the second block.
  FetchAll(blocks, Placed("a", {{{0}, 6'000, 0}, {{6'000}, 90'000, 500'000}}));
  const std::vector<DeviceRead> reads = ReadsAt(*devices_[0]);
  ASSERT_EQ(reads.size(), 3);
  EXPECT_EQ(reads[0].buffer.size(), 4'096);
  EXPECT_EQ(reads[1].buffer.size(), 4'096);
  EXPECT_EQ(reads[2].buffer.size(), 8'192);
  ServeInTurn(*devices_[0], 3);
  SettleDecoding(*store_);
  ExpectTexts(blocks, 0);
}

TEST_F(DrivesTest, EachDriveHasAQueueAndADepthOfItsOwn) {
  TestBlocks of_a(5, 4'000, 1, 1 << 20);
  TestBlocks of_b(5, 4'000, 2, 1 << 20);
  TestBlocks of_c(5, 4'000, 3, 1 << 20);
  Open({.device_depth = 2,
        .drives = {{.name = "a", .kind = DriveKind::kRotational},
                   {.name = "b", .kind = DriveKind::kRotational}}});
  QUIRE_ASSERT_OK(store_->AddDrive({.name = "b"}));
  ASSERT_EQ(devices_.size(), 2);
  QUIRE_ASSERT_OK(store_->AddDrive({.name = "c"}));
  ASSERT_EQ(devices_.size(), 3);
  FetchAll(of_a, Placed("a"));
  FetchAll(of_b, Placed("b"));
  FetchAll(of_c, Placed("c"));
  for (const ManualDevice* device : devices_) {
    EXPECT_EQ(device->waiting().size(), 2);
  }
  EXPECT_EQ(devices_[1]->waiting()[0].fd, of_b.file().fd());
  EXPECT_THAT(ServeInTurn(*devices_[2], 5),
              ElementsAre(of_c.OffsetOf(0), of_c.OffsetOf(1), of_c.OffsetOf(2),
                          of_c.OffsetOf(3), of_c.OffsetOf(4)));
  BlockStoreStats stats = store_->Stats();
  ASSERT_EQ(stats.drives.size(), 3);
  EXPECT_EQ(stats.drives[0].name, "a");
  EXPECT_EQ(stats.drives[0].reads_in_flight, 2);
  EXPECT_EQ(stats.drives[0].queued_requests, 3);
  EXPECT_EQ(stats.drives[2].reads, 5);
  EXPECT_EQ(stats.device_reads_in_flight, 4);
  ServeInTurn(*devices_[0], 5);
  ServeInTurn(*devices_[1], 5);
  SettleDecoding(*store_);
  ExpectTexts(of_a, 0);
  ExpectTexts(of_b, 5);
  ExpectTexts(of_c, 10);
}

TEST(BlockStoreDrivesTest, AddsDrivesAsTheOptionsWereAtFirst) {
  BlockStoreOptions options{.engine = BlockStoreOptions::Engine::kPread,
                            .device_depth = 2};
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto store, BlockStore::Create(options));
  // The options are the caller's, and may be destroyed by now.
  options.device_depth = 0;
  QUIRE_ASSERT_OK(store->AddDrive({.name = "later"}));
  const std::vector<DriveDescription> drives = store->Drives();
  ASSERT_EQ(drives.size(), 2);
  EXPECT_EQ(drives[1].drive.name, "later");
  EXPECT_EQ(drives[1].engine, "pread");
}

TEST_F(DrivesTest, WhatLiesElsewhereGoesToTheFirstInOrderOfOffsets) {
  TestBlocks blocks(2, 4'088);
  Open({.device_depth = 1, .drives = {{.name = "a"}, {.name = "b"}}});
  FetchAll(blocks, Placed("z", {{{0}, 4'096, 70'000}, {{4'096}, 4'096, 0}}));
  const std::vector<DeviceRead> reads = devices_[0]->waiting();
  ASSERT_EQ(reads.size(), 1);
  EXPECT_EQ(reads[0].buffer.size(), 8'192);
  devices_[0]->Serve();
  SettleDecoding(*store_);
  ExpectTexts(blocks, 0);
}

TEST_F(DrivesTest, TakeTurnsWhereMemoryIsShort) {
  TestBlocks of_a(40, 4'000, 1, 1 << 20);
  TestBlocks of_b(4, 30'000, 2, 1 << 20);
  // Each read takes its buffer and its text: 8 KiB, or 64 KiB; 70 are
  // available.
  Open({.buffers_size_bytes_max = 70 << 10,
        .drives = {{.name = "a"}, {.name = "b"}}});
  FetchAll(of_a, Placed("a"));
  FetchAll(of_b, Placed("b"));
  const size_t at_first = devices_[0]->waiting().size();
  ASSERT_LT(at_first, 10);
  // The large ones wait for memory, and small ones do not take the memory freed
  // for them: between two large ones the small ones have one turn.
  size_t of_a_served = 0;
  for (uint64_t i = 0; i < of_b.count(); ++i) {
    while (ReadsAt(*devices_[1]).empty()) {
      ASSERT_FALSE(devices_[0]->waiting().empty())
          << "both drives wait for memory that nothing takes";
      devices_[0]->Serve();
      ++of_a_served;
    }
    devices_[1]->Serve();
  }
  EXPECT_LE(of_a_served, at_first + 2 * of_b.count());
  ServeInTurn(*devices_[0], of_a.count() - of_a_served);
  SettleDecoding(*store_);
  ExpectTexts(of_a, 0);
  ExpectTexts(of_b, 40);
}

}  // namespace
}  // namespace quire
