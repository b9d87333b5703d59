// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/simulation/cache_streams.h"

#include <algorithm>
#include <vector>

#include "gtest/gtest.h"

namespace quire {
namespace {

std::vector<uint64_t> CountsByBlock(const std::vector<CacheRequest>& stream,
                                    uint64_t blocks) {
  std::vector<uint64_t> counts(blocks);
  for (const CacheRequest& request : stream) {
    ++counts[request.block];
  }
  std::sort(counts.rbegin(), counts.rend());
  return counts;
}

TEST(CacheStreamsTest, PopularityFallsAsTheExponentSays) {
  const CacheStreamOptions flat{.blocks = 100, .requests = 100'000};
  const std::vector<uint64_t> alike =
      CountsByBlock(MakeCacheStream(flat, 1), 100);
  EXPECT_LT(alike.front(), 1200);
  EXPECT_GT(alike.back(), 800);
  CacheStreamOptions steep = flat;
  steep.zipf_exponent = 1.0;
  const std::vector<uint64_t> zipf =
      CountsByBlock(MakeCacheStream(steep, 1), 100);
  // Of 100 ranks the first has 1 / 5.19, the tenth a tenth of that.
  EXPECT_NEAR(static_cast<double>(zipf[0]), 19'278, 600);
  EXPECT_NEAR(static_cast<double>(zipf[9]), 1'928, 200);
}

TEST(CacheStreamsTest, AScanPassesOverAllBlocksInTheirOrder) {
  const std::vector<CacheRequest> stream =
      MakeCacheStream({.blocks = 10, .requests = 40, .scan_blocks = 2}, 1);
  ASSERT_EQ(stream.size(), 10 + 3 * 30);
  uint64_t scanned = 0;
  uint64_t counted = 0;
  for (size_t i = 0; i < stream.size(); ++i) {
    const bool is_scan = i >= 10 && i % 3 != 1;
    EXPECT_EQ(stream[i].use == BlockCache::Use::kScan, is_scan);
    if (is_scan) {
      EXPECT_EQ(stream[i].block, scanned++ % 10);
    }
    counted += stream[i].counts ? 1 : 0;
  }
  EXPECT_EQ(counted, 30);
}

TEST(CacheStreamsTest, ReadersReadOn) {
  const std::vector<CacheRequest> stream = MakeCacheStream(
      {.blocks = 1000, .requests = 60, .run_blocks = 3, .asks_per_block = 2},
      1);
  for (size_t i = 0; i < stream.size(); i += 6) {
    for (size_t k = 0; k < 6; ++k) {
      EXPECT_EQ(stream[i + k].block, (stream[i].block + k / 2) % 1000);
    }
  }
}

TEST(CacheStreamsTest, TheHotSetMoves) {
  const std::vector<CacheRequest> stream =
      MakeCacheStream({.blocks = 1000,
                       .requests = 20'000,
                       .zipf_exponent = 2.0,
                       .shift_interval = 10'000},
                      1);
  const auto middle = stream.begin() + 10'000;
  const uint64_t first = CountsByBlock({stream.begin(), middle}, 1000)[0];
  const uint64_t second = CountsByBlock({middle, stream.end()}, 1000)[0];
  EXPECT_GT(first, 5'000);
  EXPECT_GT(second, 5'000);
  // It was another block, or the two together would lead by as much.
  EXPECT_LT(CountsByBlock(stream, 1000)[0], 8'000);
}

}  // namespace
}  // namespace quire
