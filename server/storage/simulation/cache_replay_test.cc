// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/simulation/cache_replay.h"

#include <algorithm>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace quire {
namespace {

std::vector<CacheRequest> Stream(const std::vector<uint64_t>& blocks) {
  std::vector<CacheRequest> stream;
  stream.reserve(blocks.size());
  for (const uint64_t block : blocks) {
    stream.push_back({.block = block});
  }
  return stream;
}

uint64_t HitsOf(ReferencePolicy policy, const std::vector<uint64_t>& blocks,
                uint64_t capacity_blocks) {
  return ReplayOnReference(Stream(blocks),
                           *MakeReferenceCache(policy, capacity_blocks))
      .hits;
}

TEST(CacheReplayTest, ReferencesEvictWhatTheirNamesSay) {
  // After 1 2 3 1 4 LRU has lost 2, FIFO 1, and CLOCK 2.
  const std::vector<uint64_t> asked_1 = {1, 2, 3, 1, 4, 1};
  const std::vector<uint64_t> asked_2 = {1, 2, 3, 1, 4, 2};
  EXPECT_EQ(HitsOf(ReferencePolicy::kLru, asked_1, 3), 2);
  EXPECT_EQ(HitsOf(ReferencePolicy::kLru, asked_2, 3), 1);
  EXPECT_EQ(HitsOf(ReferencePolicy::kFifo, asked_1, 3), 1);
  EXPECT_EQ(HitsOf(ReferencePolicy::kFifo, asked_2, 3), 2);
  EXPECT_EQ(HitsOf(ReferencePolicy::kClock, asked_1, 3), 2);
  EXPECT_EQ(HitsOf(ReferencePolicy::kClock, asked_2, 3), 1);
  // 1 was asked for again; however many come once, it stays.
  const std::vector<uint64_t> once = {1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1};
  EXPECT_EQ(HitsOf(ReferencePolicy::kSegmentedLru, once, 3), 2);
  EXPECT_EQ(HitsOf(ReferencePolicy::kLru, once, 3), 1);
}

TEST(CacheReplayTest, SegmentedLruLetsTheLeastRecentOfTheKeptGo) {
  // Room for four of five is for the kept; the fifth pushes 1 out.
  EXPECT_EQ(HitsOf(ReferencePolicy::kSegmentedLru,
                   {1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 1, 2}, 5),
            6);
}

TEST(CacheReplayTest, TheOptimumKnowsTheFuture) {
  // 3 need not come in at all.
  EXPECT_EQ(ReplayOnOptimum(Stream({1, 2, 3, 1, 2}), 2).hits, 2);
  EXPECT_EQ(ReplayOnOptimum(Stream({1, 2, 3, 1, 2}), 1).hits, 1);
  EXPECT_EQ(ReplayOnOptimum(Stream({1, 2, 3, 4, 5}), 5).hits, 0);
  // What does not count still brings a block, and takes no space for itself.
  std::vector<CacheRequest> stream = Stream({1, 2, 1, 2});
  stream[0].counts = stream[1].counts = false;
  EXPECT_EQ(ReplayOnOptimum(stream, 1).hits, 1);
  stream[2].counts = false;
  EXPECT_EQ(ReplayOnOptimum(stream, 1).hits, 1);
  EXPECT_EQ(ReplayOnOptimum(stream, 1).requests, 1);
}

TEST(CacheReplayTest, NobodyBeatsTheOptimum) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    const std::vector<CacheRequest> stream =
        MakeCacheStream({.blocks = 200,
                         .requests = 2'000,
                         .zipf_exponent = 0.1 * static_cast<double>(seed % 15),
                         .shift_interval = seed % 3 * 400,
                         .scan_blocks = seed % 2},
                        seed);
    constexpr uint64_t kCapacityBlocks = 20;
    const ReplayResult best = ReplayOnOptimum(stream, kCapacityBlocks);
    for (const ReferencePolicy policy :
         {ReferencePolicy::kLru, ReferencePolicy::kFifo,
          ReferencePolicy::kClock, ReferencePolicy::kSegmentedLru}) {
      const auto cache = MakeReferenceCache(policy, kCapacityBlocks);
      const ReplayResult result = ReplayOnReference(stream, *cache);
      EXPECT_LE(result.hits, best.hits);
      EXPECT_EQ(result.requests, best.requests);
    }
    constexpr uint64_t kChargeBytes = 64 << 10;
    BlockCache cache(
        {.capacity_size_bytes =
             kCapacityBlocks * (kChargeBytes + BlockCache::kEntryOverheadBytes),
         .shards_max = 1});
    const ReplayResult result = ReplayOnBlockCache(stream, cache, kChargeBytes);
    EXPECT_LE(result.hits, best.hits);
    EXPECT_GT(result.hits, 0);
  }
}

}  // namespace
}  // namespace quire
