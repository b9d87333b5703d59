// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/cache/block_cache.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace quire {
namespace {

constexpr uint64_t kBlockSizeBytes = 16 << 10;
constexpr uint64_t kChargeBytes =
    kBlockSizeBytes + BlockCache::kEntryOverheadBytes;

// A block with a number; counts the live instances.
class NumberedBlock : public DecodedBlock {
 public:
  explicit NumberedBlock(uint64_t number)
      : number_(number), text_(8, static_cast<uint8_t>(number)) {
    ++alive_count;
  }

  ~NumberedBlock() override { --alive_count; }

  ByteView bytes() const override { return text_; }

  uint64_t number() const { return number_; }

  inline static std::atomic<int64_t> alive_count = 0;

 private:
  const uint64_t number_;
  const std::vector<uint8_t> text_;
};

BlockKey Key(uint64_t number) {
  return {.source_id = number % 3,
          .block = {.segment_index = 0, .block_index = number}};
}

bool Has(BlockCache& cache, uint64_t number,
         BlockCache::Use use = BlockCache::Use::kDemand) {
  const BlockCache::BlockPtr block = cache.Find(Key(number), use);
  if (block != nullptr) {
    EXPECT_EQ(static_cast<const NumberedBlock&>(*block).number(), number);
  }
  return block != nullptr;
}

void Put(BlockCache& cache, uint64_t number,
         BlockCache::Use use = BlockCache::Use::kDemand) {
  cache.Insert(Key(number), std::make_shared<NumberedBlock>(number),
               kBlockSizeBytes, use);
}

// Uses the cache like a store; returns true for a hit.
bool Ask(BlockCache& cache, uint64_t number,
         BlockCache::Use use = BlockCache::Use::kDemand) {
  if (Has(cache, number, use)) {
    return true;
  }
  Put(cache, number, use);
  return false;
}

TEST(BlockCacheTest, KeepsWhatFitsAndNoMore) {
  BlockCache cache({.capacity_size_bytes = 100 * kChargeBytes + 2000});
  for (uint64_t i = 0; i < 1000; ++i) {
    Put(cache, i);
    const BlockCache::Stats stats = cache.GetStats();
    ASSERT_LE(stats.size_bytes, cache.capacity_size_bytes());
    ASSERT_EQ(stats.blocks, std::min<uint64_t>(i + 1, 100));
    ASSERT_EQ(stats.size_bytes, stats.blocks * kChargeBytes);
    ASSERT_EQ(NumberedBlock::alive_count, stats.blocks);
  }
  EXPECT_EQ(cache.GetStats().evictions, 900);
  EXPECT_EQ(cache.GetStats().hits, 0);
}

TEST(BlockCacheTest, ShrinksAndGrows) {
  constexpr uint64_t kLargeBytes = 64 << 20;
  constexpr uint64_t kSmallBytes = 8 << 20;
  BlockCache cache({.capacity_size_bytes = kLargeBytes});
  EXPECT_EQ(cache.shard_count(), 16u);
  const auto fill = [&] {
    for (uint64_t i = 0; i < 6000; ++i) {
      Put(cache, i);
      ASSERT_LE(cache.GetStats().size_bytes, cache.capacity_size_bytes());
    }
  };
  fill();
  EXPECT_GT(cache.GetStats().size_bytes, kLargeBytes * 9 / 10);
  cache.Resize(kSmallBytes);
  EXPECT_EQ(cache.capacity_size_bytes(), kSmallBytes);
  BlockCache::Stats stats = cache.GetStats();
  EXPECT_LE(stats.size_bytes, kSmallBytes);
  // Evicted blocks are destroyed by now, and the rest is found.
  EXPECT_EQ(NumberedBlock::alive_count, stats.blocks);
  fill();
  EXPECT_GT(cache.GetStats().size_bytes, kSmallBytes * 9 / 10);
  // The number of shards stays, so that each of them shrinks.
  cache.Resize(kSmallBytes / 8 * 15);
  fill();
  EXPECT_GT(cache.GetStats().size_bytes, kSmallBytes);
  cache.Resize(kSmallBytes);
  EXPECT_LE(cache.GetStats().size_bytes, kSmallBytes);
  // Few shards, as no small shard could hold a large block.
  cache.Insert(Key(7000), std::make_shared<NumberedBlock>(7000), 1 << 20,
               BlockCache::Use::kDemand);
  EXPECT_TRUE(Has(cache, 7000));

  cache.Resize(kLargeBytes);
  fill();
  stats = cache.GetStats();
  EXPECT_GT(stats.size_bytes, kLargeBytes * 9 / 10);
  EXPECT_EQ(NumberedBlock::alive_count, stats.blocks);
  cache.Resize(0);
  EXPECT_EQ(cache.GetStats().blocks, 0u);
  EXPECT_EQ(NumberedBlock::alive_count, 0);
}

TEST(BlockCacheTest, IsResizedWhileItIsUsed) {
  BlockCache cache({.capacity_size_bytes = 16 << 20});
  std::atomic<bool> is_done = false;
  {
    std::vector<std::jthread> users;
    for (uint64_t seed = 1; seed <= 2; ++seed) {
      users.emplace_back([&cache, &is_done, seed] {
        std::mt19937_64 random(seed);
        while (!is_done) {
          Ask(cache, random() % 2000);
        }
      });
    }
    for (int i = 0; i < 100; ++i) {
      cache.Resize(i % 2 == 0 ? 4 << 20 : 16 << 20);
    }
    is_done = true;
  }
  cache.Resize(4 << 20);
  EXPECT_LE(cache.GetStats().size_bytes, 4 << 20);
}

TEST(BlockCacheTest, ALookIsNoUse) {
  BlockCache cache({.capacity_size_bytes = 2 * kChargeBytes + 100});
  Put(cache, 1);
  Put(cache, 2);
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(cache.Contains(Key(1)));
    EXPECT_FALSE(cache.Contains(Key(3)));
  }
  EXPECT_EQ(cache.GetStats().hits, 0);
  // Block 1 is evicted next, as Contains() is not a use.
  Put(cache, 3);
  EXPECT_FALSE(cache.Contains(Key(1)));
  EXPECT_TRUE(cache.Contains(Key(2)));
}

TEST(BlockCacheTest, FreesItsBlocksWithIt) {
  BlockCache::BlockPtr kept;
  {
    BlockCache cache({.capacity_size_bytes = 10 * kChargeBytes});
    Put(cache, 1);
    Put(cache, 2);
    kept = cache.Find(Key(2), BlockCache::Use::kDemand);
  }
  EXPECT_EQ(NumberedBlock::alive_count, 1);
  EXPECT_EQ(kept->bytes()[0], 2);
}

TEST(BlockCacheTest, HoldersKeepEvictedBlocks) {
  BlockCache cache({.capacity_size_bytes = kChargeBytes + 100});
  Put(cache, 1);
  const BlockCache::BlockPtr held = cache.Find(Key(1), BlockCache::Use::kScan);
  Put(cache, 2);
  EXPECT_FALSE(Has(cache, 1));
  EXPECT_TRUE(Has(cache, 2));
  EXPECT_EQ(held->bytes()[0], 1);
}

TEST(BlockCacheTest, WorksAtAnyCapacity) {
  for (const uint64_t capacity :
       std::vector<uint64_t>{0, 1, 300, kBlockSizeBytes, kChargeBytes - 1}) {
    BlockCache cache({.capacity_size_bytes = capacity});
    for (uint64_t i = 0; i < 50; ++i) {
      EXPECT_FALSE(Ask(cache, i % 5));
    }
    EXPECT_EQ(cache.GetStats().size_bytes, 0);
    EXPECT_EQ(NumberedBlock::alive_count, 0);
  }
  for (uint64_t blocks = 1; blocks < 20; ++blocks) {
    BlockCache cache({.capacity_size_bytes = blocks * (kChargeBytes + 16)});
    for (uint64_t i = 0; i < 500; ++i) {
      Ask(cache, i * i % 37);
      ASSERT_LE(cache.GetStats().size_bytes, cache.capacity_size_bytes());
    }
    EXPECT_EQ(cache.GetStats().blocks, std::min<uint64_t>(blocks, 19));
  }
}

TEST(BlockCacheTest, TheFirstBlockOfAKeyStays) {
  BlockCache cache({.capacity_size_bytes = 4 * kChargeBytes});
  Put(cache, 1);
  const BlockCache::BlockPtr first =
      cache.Find(Key(1), BlockCache::Use::kDemand);
  Put(cache, 1);
  EXPECT_EQ(cache.Find(Key(1), BlockCache::Use::kDemand), first);
  EXPECT_EQ(cache.GetStats().blocks, 1);
  EXPECT_EQ(cache.GetStats().size_bytes, kChargeBytes);
  EXPECT_EQ(cache.GetStats().hits, 2);
}

TEST(BlockCacheTest, AHashThatCollidesAlwaysOnlySlowsItDown) {
  BlockCache cache({.capacity_size_bytes = uint64_t{64} << 20,
                    .hash = [](const BlockKey&) { return uint64_t{42}; }});
  ASSERT_EQ(cache.shard_count(), 16);
  for (uint64_t i = 0; i < 600; ++i) {
    Put(cache, i);
    ASSERT_TRUE(Has(cache, i));
  }
  // All of them fell into one shard.
  EXPECT_LE(cache.GetStats().size_bytes, (uint64_t{64} << 20) / 16);
  EXPECT_GT(cache.GetStats().blocks, 200);
}

TEST(BlockCacheTest, SpreadsOverItsShards) {
  BlockCache cache({.capacity_size_bytes = uint64_t{64} << 20});
  for (uint64_t i = 0; i < 20000; ++i) {
    Put(cache, i);
  }
  EXPECT_GT(cache.GetStats().size_bytes,
            cache.capacity_size_bytes() - (uint64_t{1} << 20));
}

class ScanResistanceTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kCapacityBlocks = 500;
  static constexpr uint64_t kWorkingSet = 400;

  // Requests the working set until it has settled.
  void Warm() {
    for (int round = 0; round < 4; ++round) {
      for (uint64_t i = 0; i < kWorkingSet; ++i) {
        Ask(cache_, i);
      }
    }
  }

  uint64_t WorkingSetBlocks() {
    uint64_t blocks = 0;
    for (uint64_t i = 0; i < kWorkingSet; ++i) {
      blocks += Has(cache_, i, BlockCache::Use::kScan) ? 1 : 0;
    }
    return blocks;
  }

  BlockCache cache_{
      {.capacity_size_bytes = kCapacityBlocks * kChargeBytes, .shards_max = 1}};
};

TEST_F(ScanResistanceTest, AScanEvictsNothing) {
  Warm();
  for (uint64_t i = 10000; i < 15000; ++i) {
    EXPECT_FALSE(Ask(cache_, i, BlockCache::Use::kScan));
  }
  EXPECT_EQ(WorkingSetBlocks(), kWorkingSet);
  EXPECT_EQ(cache_.GetStats().evictions, 0);
  // It did fill the free space.
  EXPECT_GT(cache_.GetStats().blocks, kCapacityBlocks - 2);
}

TEST_F(ScanResistanceTest, WhatAScanLeftGoesFirst) {
  for (uint64_t i = 10000; i < 15000; ++i) {
    Ask(cache_, i, BlockCache::Use::kScan);
  }
  Warm();
  EXPECT_EQ(WorkingSetBlocks(), kWorkingSet);
  EXPECT_EQ(cache_.GetStats().evictions, kWorkingSet);
}

TEST_F(ScanResistanceTest, NewBlocksHaveTheirShareOnceWhatAScanLeftIsGone) {
  for (uint64_t i = 10000; i < 15000; ++i) {
    Ask(cache_, i, BlockCache::Use::kScan);
  }
  Warm();
  // Another working set, so that the cache is full of wanted blocks.
  for (int round = 0; round < 20; ++round) {
    for (uint64_t i = 0; i < kWorkingSet; ++i) {
      Ask(cache_, 20000 + i);
    }
  }
  // Fewer than probation's share.
  for (uint64_t i = 30000; i < 30020; ++i) {
    Ask(cache_, i);
  }
  for (uint64_t i = 30000; i < 30020; ++i) {
    EXPECT_TRUE(cache_.Contains(Key(i))) << i;
  }
}

TEST_F(ScanResistanceTest, BlocksAskedForOnceDoNotDisplaceTheWorkingSet) {
  Warm();
  uint64_t hits = 0;
  for (uint64_t i = 0; i < 20000; ++i) {
    hits += Ask(cache_, i % kWorkingSet) ? 1 : 0;
    Ask(cache_, 10000 + i);
  }
  EXPECT_GT(hits, 19900);
}

// Independent of the distribution of keys over the ghosts.
TEST_F(ScanResistanceTest, ANewWorkingSetReplacesTheOld) {
  Warm();
  for (uint64_t set = 1; set <= 100; ++set) {
    uint64_t hits = 0;
    for (int round = 0; round < 20; ++round) {
      for (uint64_t i = 0; i < kWorkingSet; ++i) {
        hits += Ask(cache_, set * 5000 + i) ? 1 : 0;
      }
    }
    // It enters through the ghosts, not at once.
    EXPECT_GT(hits, 12 * kWorkingSet) << "set " << set;
  }
}

// A working set by Zipf's law in a cache of a tenth of the blocks, while all
// blocks are read repeatedly.
class FullScanTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kBlocks = 4'000;

  // Returns the hits of the working set after the first quarter of its
  // requests. `scan_reads`: reads of the scan between two requests.
  static uint64_t Hits(uint64_t scan_reads, BlockCache::Use scan_use,
                       uint64_t scan_reads_per_block = 1) {
    constexpr uint64_t kRequests = 40'000;
    BlockCache cache({.capacity_size_bytes = kBlocks / 10 * kChargeBytes});
    std::vector<double> shares;
    for (uint64_t rank = 1; rank <= kBlocks; ++rank) {
      shares.push_back(1 / static_cast<double>(rank));
    }
    std::discrete_distribution<uint64_t> draw_rank(shares.begin(),
                                                   shares.end());
    std::mt19937_64 random(1);
    uint64_t hits = 0;
    uint64_t scanned = 0;
    for (uint64_t i = 0; i < kRequests; ++i) {
      // Scatters the popular blocks: 1,009 is coprime to kBlocks.
      const bool is_hit = Ask(cache, draw_rank(random) * 1'009 % kBlocks);
      if (i < kRequests / 4) {
        continue;
      }
      hits += is_hit ? 1 : 0;
      for (uint64_t k = 0; k < scan_reads; ++k) {
        Ask(cache, scanned++ / scan_reads_per_block % kBlocks, scan_use);
      }
    }
    return hits;
  }
};

TEST_F(FullScanTest, OneThatSaysSoCostsNotASingleHit) {
  const uint64_t alone = Hits(0, BlockCache::Use::kScan);
  EXPECT_EQ(Hits(1, BlockCache::Use::kScan), alone);
  EXPECT_EQ(Hits(3, BlockCache::Use::kScan), alone);
}

TEST_F(FullScanTest, OneThatDoesNotCostsATwentiethAtMost) {
  const uint64_t alone = Hits(0, BlockCache::Use::kScan);
  EXPECT_GE(Hits(1, BlockCache::Use::kDemand), alone - alone / 20);
  // Nor a scan in ranges of a quarter of a block.
  EXPECT_GE(Hits(4, BlockCache::Use::kDemand, 4), alone - alone / 20);
}

TEST(BlockCacheTest, StaysBoundedUnderManyThreads) {
  BlockCache cache({.capacity_size_bytes = uint64_t{16} << 20});
  ASSERT_EQ(cache.shard_count(), 4);
  const auto work = [&cache](uint64_t seed) {
    std::mt19937_64 random(seed);
    for (int i = 0; i < 4000; ++i) {
      const uint64_t number = random() % (1 + random() % 4000);
      Ask(cache, number,
          random() % 4 == 0 ? BlockCache::Use::kScan
                            : BlockCache::Use::kDemand);
      ASSERT_LE(cache.GetStats().size_bytes, cache.capacity_size_bytes());
    }
  };
  std::vector<std::thread> threads;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    threads.emplace_back(work, seed);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(NumberedBlock::alive_count, cache.GetStats().blocks);
}

}  // namespace
}  // namespace quire
