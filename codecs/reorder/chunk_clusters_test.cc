// SPDX-License-Identifier: Apache-2.0
#include "codecs/reorder/chunk_clusters.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/reorder/super_features.h"
#include "testing/base/noise.h"

namespace quire {
namespace {

using ::testing::ElementsAre;

int SharedCount(const std::string& a, const std::string& b) {
  const SuperFeatures of_a = SuperFeaturesOf(AsBytes(a));
  const SuperFeatures of_b = SuperFeaturesOf(AsBytes(b));
  int count = 0;
  for (size_t i = 0; i < of_a.size(); ++i) {
    count += of_a[i] == of_b[i] ? 1 : 0;
  }
  return count;
}

TEST(SuperFeaturesTest, SimilarTextsShareSomeAndOthersNone) {
  int similar_count = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const std::string text = Noise(2048, seed);
    std::string similar = text;
    similar.replace(700, 40, "another text of another size");
    similar_count += SharedCount(text, similar) > 0 ? 1 : 0;
    EXPECT_EQ(SharedCount(text, text), kSuperFeatureCount);
    EXPECT_EQ(SharedCount(text, Noise(2048, seed + 1000)), 0) << seed;
  }
  EXPECT_GT(similar_count, 90);
}

TEST(SuperFeaturesTest, NoTextHasNoneAndZerosOfAnySizeTheSame) {
  EXPECT_EQ(SuperFeaturesOf({}), SuperFeatures{});
  const SuperFeatures zeros = SuperFeaturesOf(AsBytes(std::string(2048, '\0')));
  EXPECT_EQ(zeros, SuperFeaturesOf(AsBytes(std::string(4096, '\0'))));
}

// Archives depend on these values.
TEST(SuperFeaturesTest, AreWhatTheyAlwaysWere) {
  EXPECT_EQ(SuperFeaturesOf(AsBytes(Noise(2048, 1)))[0], 7698099864724351190u);
}

TEST(ChunkClustersTest, SimilarChunksStandSideBySide) {
  ChunkClusters clusters;
  clusters.Add({1, 2, 3, 4});
  clusters.Add({5, 6, 7, 8});
  clusters.Add({9, 2, 10, 11});
  clusters.Add({0, 0, 0, 0});
  clusters.Add({12, 6, 13, 14});
  // Related through the third.
  clusters.Add({9, 15, 16, 17});
  clusters.Add({0, 0, 0, 0});
  EXPECT_THAT(OrderByLeader(clusters.Leaders()),
              ElementsAre(0, 2, 5, 1, 4, 3, 6));
  EXPECT_THAT(clusters.Leaders(), ElementsAre(0, 1, 0, 3, 1, 0, 6));
}

TEST(ChunkClustersTest, StretchesStayTogether) {
  ChunkClusters clusters;
  clusters.Add({1, 0, 0, 0});
  clusters.Add({2, 20, 0, 0});
  clusters.Add({3, 0, 0, 0});
  clusters.Add({4, 30, 0, 0});
  // Resembles the third, then its successor instead of the second.
  clusters.Add({3, 0, 0, 0});
  clusters.Add({5, 20, 30, 0});
  EXPECT_THAT(OrderByLeader(clusters.Leaders()), ElementsAre(0, 1, 2, 4, 3, 5));
}

TEST(ChunkClustersTest, JoinedChunksStayTogether) {
  ChunkClusters clusters;
  clusters.Add({1, 0, 0, 0});
  clusters.Add({2, 0, 0, 0});
  clusters.Add({3, 0, 0, 0});
  clusters.Add({1, 0, 0, 0});
  clusters.Add({3, 0, 0, 0});
  clusters.Add({2, 0, 0, 0});
  EXPECT_THAT(OrderByLeader(clusters.Leaders()), ElementsAre(0, 3, 1, 5, 2, 4));
  EXPECT_THAT(OrderByLeader(clusters.Leaders(),
                            {false, false, true, false, true, false}),
              ElementsAre(0, 3, 4, 1, 2, 5));
}

TEST(ChunkClustersTest, TakesAtMost49BytesAChunk) {
  std::mt19937_64 random(1);
  ChunkClusters clusters;
  for (size_t count = 1; count <= 400'000; ++count) {
    clusters.Add({random(), random(), random(), random()});
    if (count >= 100'000 && count % 10'000 == 0) {
      ASSERT_LE(clusters.MemoryBytes(), 49 * count);
    }
  }
  const std::vector<uint32_t> order = OrderByLeader(clusters.Leaders());
  clusters.EndAdding();
  EXPECT_LE(clusters.MemoryBytes(), 5u * 400'000);
  EXPECT_EQ(OrderByLeader(clusters.Leaders()), order);
}

TEST(ChunkClustersTest, TheOrderHasEveryChunkOnce) {
  std::mt19937_64 random(1);
  ChunkClusters clusters;
  for (int i = 0; i < 10000; ++i) {
    clusters.Add({random() % 3000, 10000 + random() % 3000, random(), 0});
  }
  std::vector<uint32_t> order = OrderByLeader(clusters.Leaders());
  EXPECT_FALSE(std::ranges::is_sorted(order));
  std::ranges::sort(order);
  for (uint32_t i = 0; i < order.size(); ++i) {
    ASSERT_EQ(order[i], i);
  }
  EXPECT_THAT(OrderByLeader(ChunkClusters().Leaders()), testing::IsEmpty());
}

}  // namespace
}  // namespace quire
