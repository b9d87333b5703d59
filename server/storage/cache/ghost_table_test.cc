// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/cache/ghost_table.h"

#include <cstdint>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace quire {
namespace {

constexpr uint64_t kAnyAge = UINT64_MAX;

std::vector<uint64_t> Hashes(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint64_t> hashes(count);
  for (uint64_t& hash : hashes) {
    hash = random();
  }
  return hashes;
}

TEST(GhostTableTest, KeepsNearlyAllItIsMadeFor) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const std::vector<uint64_t> hashes = Hashes(1000, seed);
    GhostTable ghosts(hashes.size());
    for (const uint64_t hash : hashes) {
      ghosts.Add(hash);
    }
    size_t found = 0;
    for (const uint64_t hash : hashes) {
      found += ghosts.Take(hash, kAnyAge) ? 1 : 0;
    }
    EXPECT_GE(found, 900) << "seed " << seed;
  }
}

TEST(GhostTableTest, ForgetsWhatItHandsOut) {
  GhostTable ghosts(100);
  ghosts.Add(7);
  EXPECT_TRUE(ghosts.Take(7, kAnyAge));
  EXPECT_FALSE(ghosts.Take(7, kAnyAge));
}

TEST(GhostTableTest, KnowsNothingItWasNotGiven) {
  const std::vector<uint64_t> hashes = Hashes(2000, /*seed=*/5);
  GhostTable ghosts(1000);
  for (size_t i = 0; i < 1000; ++i) {
    ghosts.Add(hashes[i]);
  }
  for (size_t i = 1000; i < 2000; ++i) {
    EXPECT_FALSE(ghosts.Take(hashes[i], kAnyAge));
  }
}

TEST(GhostTableTest, TakesNoneOlderThanAskedFor) {
  const std::vector<uint64_t> hashes = Hashes(100, /*seed=*/9);
  GhostTable ghosts(1000);
  for (const uint64_t hash : hashes) {
    ghosts.Add(hash);
  }
  EXPECT_TRUE(ghosts.Take(hashes[99], 1));
  EXPECT_FALSE(ghosts.Take(hashes[98], 1));
  EXPECT_TRUE(ghosts.Take(hashes[50], 50));
  EXPECT_FALSE(ghosts.Take(hashes[49], 50));
}

TEST(GhostTableTest, DropsTheOldestOfABucketFirst) {
  // All in one bucket: they differ only in the upper half.
  GhostTable ghosts(2);
  for (uint64_t i = 0; i <= GhostTable::kWays; ++i) {
    ghosts.Add(i << 32);
  }
  EXPECT_FALSE(ghosts.Take(0, kAnyAge));
  for (uint64_t i = 1; i <= GhostTable::kWays; ++i) {
    EXPECT_TRUE(ghosts.Take(i << 32, kAnyAge)) << i;
  }
}

TEST(GhostTableTest, HoldsNothingWithoutRoom) {
  for (const size_t count : std::initializer_list<size_t>{0, 1}) {
    GhostTable ghosts(count);
    ghosts.Add(7);
    EXPECT_FALSE(ghosts.Take(7, kAnyAge));
  }
}

}  // namespace
}  // namespace quire
