// SPDX-License-Identifier: GPL-3.0-or-later
//
// Tests blocks that are decoded in parts: each part is fetched, cached and
// counted separately, and the parts of one block share its read.
#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "server/storage/block_store.h"
#include "testing/base/status_matchers.h"
#include "testing/storage/storage_test_util.h"

namespace quire {
namespace {

using ::testing::ElementsAre;

constexpr uint32_t kPartSize = 4096;
constexpr uint32_t kRawSize = 9 * kPartSize + 100;
constexpr uint32_t kPartCount = 10;

// Records the parts that it decodes, and calls the test before it decodes.
class PartDecoder final : public BlockDecoder {
 public:
  explicit PartDecoder(std::shared_ptr<const BlockDecoder> decoder)
      : decoder_(std::move(decoder)) {}

  absl::Status Decode(BlockAddress block, ByteView stored,
                      std::span<const BlockPart> parts) const override {
    std::vector<uint32_t> indexes;
    for (const BlockPart& part : parts) {
      indexes.push_back(part.offset_in_block / kPartSize);
    }
    decoded_.push_back(indexes);
    if (before_) {
      std::exchange(before_, nullptr)();
    }
    return decoder_->Decode(block, stored, parts);
  }

  void DoBeforeNext(std::function<void()> before) {
    before_ = std::move(before);
  }

  // Read once the pool's only thread is idle.
  const std::vector<std::vector<uint32_t>>& decoded() const { return decoded_; }

 private:
  const std::shared_ptr<const BlockDecoder> decoder_;
  mutable std::function<void()> before_;
  mutable std::vector<std::vector<uint32_t>> decoded_;
};

class BlockStorePartsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    BlockStoreOptions options;
    options.decode_threads = 1;
    auto store = BlockStore::Create(
        options, [this](Device::Done done) -> absl::StatusOr<OpenedDevice> {
          auto device = std::make_unique<ManualDevice>(std::move(done));
          device_ = device.get();
          return OpenedDevice{std::move(device), ""};
        });
    QUIRE_ASSERT_OK(store);
    store_ = std::move(store).value();
  }

  BlockFetch PartFetch(uint64_t block_index, uint32_t part) {
    BlockFetch fetch = blocks_.Fetch(block_index);
    fetch.key.part = part;
    fetch.part_size_bytes = kPartSize;
    fetch.decoder = decoder_;
    return fetch;
  }

  struct Wait {
    bool ended = false;
    absl::StatusOr<BlockPtr> result = BlockPtr();
  };

  std::shared_ptr<Wait> Start(BlockFetch fetch,
                              BlockStore::FetchId* id = nullptr) {
    auto wait = std::make_shared<Wait>();
    const BlockStore::FetchId started =
        store_->Fetch(std::move(fetch), [wait](absl::StatusOr<BlockPtr> block) {
          EXPECT_FALSE(wait->ended);
          wait->ended = true;
          wait->result = std::move(block);
        });
    if (id != nullptr) {
      *id = started;
    }
    return wait;
  }

  void Serve(const ReadFault& fault = nullptr) {
    device_->Serve(fault);
    SettleDecoding(*store_);
  }

  std::vector<uint8_t> PartText(uint64_t block_index, uint32_t part) const {
    const std::vector<uint8_t> text = blocks_.Text(block_index);
    const size_t begin = size_t{part} * kPartSize;
    return {text.begin() + static_cast<ptrdiff_t>(begin),
            text.begin() + static_cast<ptrdiff_t>(std::min<size_t>(
                               begin + kPartSize, text.size()))};
  }

  void ExpectPart(const Wait& wait, uint64_t block_index, uint32_t part) {
    ASSERT_TRUE(wait.ended);
    QUIRE_ASSERT_OK(wait.result);
    EXPECT_TRUE(std::ranges::equal((*wait.result)->bytes(),
                                   PartText(block_index, part)))
        << part;
  }

  bool IsCached(uint64_t block_index, uint32_t part) {
    return store_->Lookup(PartFetch(block_index, part).key) != nullptr;
  }

  TestBlocks blocks_{20, kRawSize};
  const std::shared_ptr<PartDecoder> decoder_ =
      std::make_shared<PartDecoder>(blocks_.Fetch(0).decoder);
  ManualDevice* device_ = nullptr;
  std::unique_ptr<BlockStore> store_;
};

TEST_F(BlockStorePartsTest, APartIsFetchedAndCachedByItself) {
  for (const uint32_t part : {3u, kPartCount - 1}) {
    const auto wait = Start(PartFetch(2, part));
    Serve();
    ExpectPart(*wait, 2, part);
    EXPECT_TRUE(IsCached(2, part));
  }
  EXPECT_THAT(decoder_->decoded(),
              ElementsAre(ElementsAre(3), ElementsAre(kPartCount - 1)));
  EXPECT_FALSE(IsCached(2, 0));
  EXPECT_FALSE(IsCached(1, 3));
  const BlockStoreStats stats = store_->Stats();
  EXPECT_EQ(stats.blocks_decoded, 2u);
  EXPECT_EQ(stats.decoded_bytes, kPartSize + 100u);
  EXPECT_EQ(stats.partial_decodes, 2u);
  EXPECT_EQ(stats.whole_decodes, 0u);
  EXPECT_EQ(stats.cache_blocks, 2u);
  // From the cache, without a read.
  ExpectPart(*Start(PartFetch(2, 3)), 2, 3);
  EXPECT_TRUE(device_->waiting().empty());
}

TEST_F(BlockStorePartsTest, PartsOfABlockShareItsRead) {
  // Some in one step, one while they wait, one while the device reads.
  std::vector<BlockStore::FetchItem> items;
  std::vector<std::shared_ptr<Wait>> waits;
  for (const uint32_t part : {5u, 1u, 5u}) {
    waits.push_back(std::make_shared<Wait>());
    items.push_back({PartFetch(4, part),
                     [wait = waits.back()](absl::StatusOr<BlockPtr> block) {
                       wait->ended = true;
                       wait->result = std::move(block);
                     }});
  }
  store_->FetchAll(std::move(items));
  waits.push_back(Start(PartFetch(4, 9)));
  ASSERT_EQ(device_->waiting().size(), 1u);
  Serve();
  ExpectPart(*waits[0], 4, 5);
  ExpectPart(*waits[1], 4, 1);
  ExpectPart(*waits[2], 4, 5);
  ExpectPart(*waits[3], 4, 9);
  EXPECT_THAT(decoder_->decoded(), ElementsAre(ElementsAre(1, 5, 9)));
  const BlockStoreStats stats = store_->Stats();
  EXPECT_EQ(stats.device_reads, 1u);
  EXPECT_EQ(stats.joined_fetches, 3u);
  EXPECT_EQ(stats.blocks_decoded, 3u);
  EXPECT_EQ(blocks_.DecodeCount(4), 1u);
}

TEST_F(BlockStorePartsTest, AllPartsAreCachedWhereThatIsWanted) {
  const auto one = Start(PartFetch(0, 7));
  BlockFetch fetch = PartFetch(0, 2);
  fetch.all_parts = true;
  const auto all = Start(std::move(fetch));
  Serve();
  ExpectPart(*one, 0, 7);
  ExpectPart(*all, 0, 2);
  for (uint32_t part = 0; part < kPartCount; ++part) {
    EXPECT_TRUE(IsCached(0, part)) << part;
  }
  const BlockStoreStats stats = store_->Stats();
  EXPECT_EQ(stats.whole_decodes, 1u);
  EXPECT_EQ(stats.partial_decodes, 0u);
  EXPECT_EQ(stats.decoded_bytes, kRawSize);
}

TEST_F(BlockStorePartsTest, APartThatComesTooLateIsReadByItself) {
  const auto first = Start(PartFetch(6, 0));
  std::shared_ptr<Wait> late;
  std::shared_ptr<Wait> same;
  decoder_->DoBeforeNext([&] {
    late = Start(PartFetch(6, 8));
    same = Start(PartFetch(6, 0));
  });
  Serve();
  ExpectPart(*first, 6, 0);
  ExpectPart(*same, 6, 0);
  EXPECT_FALSE(late->ended);
  Serve();
  ExpectPart(*late, 6, 8);
  EXPECT_THAT(decoder_->decoded(), ElementsAre(ElementsAre(0), ElementsAre(8)));
  EXPECT_EQ(store_->Stats().device_reads, 2u);
  EXPECT_EQ(store_->Stats().repeated_blocks, 0u);
}

TEST_F(BlockStorePartsTest, LatePartsShareTheirRead) {
  const auto first = Start(PartFetch(6, 0));
  std::shared_ptr<Wait> late;
  std::shared_ptr<Wait> last;
  BlockStore::FetchId late_id = 0;
  decoder_->DoBeforeNext([&] {
    late = Start(PartFetch(6, 8), &late_id);
    last = Start(PartFetch(6, 9));
  });
  Serve();
  ExpectPart(*first, 6, 0);
  ASSERT_EQ(device_->waiting().size(), 1u);
  // At the device already.
  store_->Cancel(late_id);
  EXPECT_FALSE(late->ended);
  Serve();
  ExpectPart(*late, 6, 8);
  ExpectPart(*last, 6, 9);
}

TEST_F(BlockStorePartsTest, DamageIsToldToEveryPart) {
  const auto one = Start(PartFetch(1, 1));
  const auto two = Start(PartFetch(1, 2));
  const ReadFault flip = [](const DeviceRead& read, DeviceResult&) {
    read.buffer[5 * kPartSize] ^= 1;
  };
  Serve(flip);
  EXPECT_FALSE(one->ended);
  // Good the second time.
  Serve();
  ExpectPart(*one, 1, 1);
  ExpectPart(*two, 1, 2);
  const auto three = Start(PartFetch(1, 3));
  Serve(flip);
  Serve(flip);
  ASSERT_TRUE(three->ended);
  EXPECT_THAT(three->result, HasCode(absl::StatusCode::kDataLoss));
  EXPECT_FALSE(IsCached(1, 3));
  EXPECT_EQ(store_->Stats().decode_failures, 1u);
  EXPECT_EQ(store_->Stats().recovered_blocks, 1u);
}

TEST_F(BlockStorePartsTest, RefusesPartsThatThereAreNot) {
  const auto expect = [&](BlockFetch fetch) {
    const auto wait = Start(std::move(fetch));
    ASSERT_TRUE(wait->ended);
    EXPECT_THAT(wait->result, HasCode(absl::StatusCode::kInvalidArgument));
  };
  expect(PartFetch(0, kPartCount));
  expect(PartFetch(0, ~0u));
  BlockFetch whole = PartFetch(0, 1);
  whole.part_size_bytes = kRawSize;
  expect(std::move(whole));
  BlockFetch none = PartFetch(0, 0);
  none.part_size_bytes = 0;
  expect(std::move(none));
  BlockFetch many = PartFetch(0, 1);
  many.part_size_bytes = 16;
  expect(std::move(many));
}

// Each fetch gets its part, in every combination.
TEST(BlockStorePartsStressTest, EveryFetchGetsItsPart) {
  TestBlocks blocks(30, kRawSize);
  BlockStoreOptions options;
  options.decode_threads = 3;
  options.cache_size_bytes = 300'000;
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<BlockStore> store,
      BlockStore::Create(
          options, [](Device::Done done) -> absl::StatusOr<OpenedDevice> {
            return OpenedDevice{std::make_unique<ChaosDevice>(
                                    5, [](const DeviceRead&, DeviceResult&) {},
                                    std::move(done)),
                                ""};
          }));
  std::atomic<int> good = 0;
  std::atomic<int> left = 4 * 500;
  std::vector<std::thread> threads;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      std::mt19937_64 random(seed);
      for (int i = 0; i < 500; ++i) {
        const uint64_t block_index = random() % blocks.count();
        const auto part = static_cast<uint32_t>(random() % kPartCount);
        BlockFetch fetch = blocks.Fetch(block_index);
        fetch.key.part = part;
        fetch.part_size_bytes = kPartSize;
        fetch.all_parts = random() % 8 == 0;
        store->Fetch(std::move(fetch), [&, block_index,
                                        part](absl::StatusOr<BlockPtr> block) {
          const std::vector<uint8_t> text = blocks.Text(block_index);
          const ByteView whole(text);
          const size_t begin = size_t{part} * kPartSize;
          const bool same =
              block.ok() &&
              std::ranges::equal(
                  (*block)->bytes(),
                  whole.subspan(begin,
                                std::min<size_t>(kPartSize, kRawSize - begin)));
          good += same ? 1 : 0;
          --left;
        });
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  while (left > 0) {
    std::this_thread::yield();
  }
  EXPECT_EQ(good, 4 * 500);
  const BlockStoreStats stats = store->Stats();
  EXPECT_EQ(stats.queued_fetches, 0u);
  EXPECT_LE(stats.cache_size_bytes, options.cache_size_bytes);
}

}  // namespace
}  // namespace quire
