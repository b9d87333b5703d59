// SPDX-License-Identifier: Apache-2.0
#include "codecs/reorder/reorder_price.h"

#include <cstdint>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/reorder/super_features.h"

namespace quire {
namespace {

using ::testing::ElementsAre;

constexpr uint64_t kMiB = 1 << 20;
constexpr uint32_t kBlockSizeBytes = 64 << 10;
constexpr ReorderPrice kPrice = {.block_size_bytes = kBlockSizeBytes};

struct Unit {
  uint64_t size_bytes = 0;
  uint32_t leader = 0;
  uint8_t shared_count = kSuperFeatureCount;
};

// All units, then the other runs.
std::vector<bool> Choose(const std::vector<Unit>& units,
                         std::vector<StoredRun> runs = {}) {
  OffsetList offsets;
  std::vector<uint32_t> leaders;
  std::vector<uint8_t> shared_counts;
  uint64_t end = 0;
  for (const Unit& unit : units) {
    offsets.Append(end);
    leaders.push_back(unit.leader);
    shared_counts.push_back(unit.shared_count);
    end += unit.size_bytes;
  }
  if (runs.empty() && end > 0) {
    runs = {{end, 0}};
  }
  return ChooseMoves({.offsets = offsets,
                      .text_size_bytes = end,
                      .leaders = leaders,
                      .shared_counts = shared_counts},
                     runs, kPrice);
}

TEST(ReorderPriceTest, SavingsGrowWithSizeAndResemblance) {
  EXPECT_EQ(ReorderPrice::Saved(10'000, 0), 0);
  EXPECT_LT(ReorderPrice::Saved(10'000, 1), ReorderPrice::Saved(10'000, 2));
  EXPECT_LT(ReorderPrice::Saved(10'000, 4), ReorderPrice::Saved(20'000, 4));
  // Less than the text itself.
  EXPECT_LT(ReorderPrice::Saved(10'000, kSuperFeatureCount), 10'000);
}

TEST(ReorderPriceTest, AJumpCostsTheSameFromABlockOn) {
  EXPECT_EQ(kPrice.OfJump(5, 5), 0);
  EXPECT_EQ(kPrice.OfJump(0, kBlockSizeBytes), kPrice.OfJump(kMiB, 0));
  EXPECT_EQ(kPrice.OfJump(0, kBlockSizeBytes / 2) * 2, kPrice.OfJump(0, kMiB));
}

TEST(ReorderPriceTest, ADuplicateIsWorthTheWayThereAndBack) {
  EXPECT_EQ(static_cast<double>(kWorthwhileDuplicateSizeBytes),
            2 * kPrice.OfJump(0, kMiB));
}

TEST(ReorderPriceTest, AUnitMovesIfThatSavesMoreThanTheJumps) {
  EXPECT_THAT(Choose({{40'000, 0}, {kMiB, 1}, {40'000, 0}, {kMiB, 3}}),
              ElementsAre(false, false, true, false));
  EXPECT_THAT(Choose({{40'000, 0}, {kMiB, 1}, {40'000, 0, 0}, {kMiB, 3}}),
              testing::Each(false));
  EXPECT_THAT(Choose({{400, 0}, {kMiB, 1}, {400, 0}, {kMiB, 3}}),
              testing::Each(false));
}

// A single unit does not pay for the jumps there and back.
TEST(ReorderPriceTest, NeighboursMoveTogether) {
  for (const uint32_t count : {5u, 50u}) {
    SCOPED_TRACE(count);
    std::vector<Unit> units;
    for (uint32_t i = 0; i < count; ++i) {
      units.push_back({1000, i});
    }
    units.push_back({kMiB, count});
    for (uint32_t i = 0; i < count; ++i) {
      units.push_back({1000, i});
    }
    units.push_back({kMiB, 2 * count + 1});
    std::vector<bool> expected(units.size(), false);
    std::fill(expected.begin() + count + 1, expected.end() - 1, count == 50);
    EXPECT_EQ(Choose(units), expected);
  }
}

// The surrounding text is already stored elsewhere, next to similar text.
TEST(ReorderPriceTest, AUnitMovesToWhereTheTextAroundItIs) {
  const std::vector<Unit> units = {
      {1000, 0}, {kMiB, 1}, {kMiB, 2}, {600, 0, 1}};
  EXPECT_THAT(Choose(units), testing::Each(false));
  EXPECT_THAT(Choose(units, {{2 * kMiB + 1000, 0},
                             {500, 500},
                             {600, 2 * kMiB + 1000},
                             {2000, 1000}}),
              ElementsAre(false, false, false, true));
}

TEST(ReorderPriceTest, NothingChoosesNothing) {
  EXPECT_THAT(Choose({}), testing::IsEmpty());
}

double PriceOf(const std::vector<Unit>& units, uint32_t moves) {
  std::vector<uint64_t> offsets;
  uint64_t size = 0;
  for (const Unit& unit : units) {
    offsets.push_back(size);
    size += unit.size_bytes;
  }
  double price = 0;
  uint64_t end = 0;
  for (size_t i = 0; i < units.size(); ++i) {
    const bool is_moved = (moves >> i & 1) != 0;
    if (is_moved) {
      price -= ReorderPrice::Saved(units[i].size_bytes, units[i].shared_count);
    }
    const uint64_t place = offsets[is_moved ? units[i].leader : i];
    price += kPrice.OfJump(end, place);
    end = place + units[i].size_bytes;
  }
  return price;
}

TEST(ReorderPriceTest, IsTheBestOfAllChoices) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    std::vector<Unit> units;
    uint32_t movable = 0;
    for (uint32_t i = 0; i < 10; ++i) {
      const auto near = static_cast<uint32_t>(random() % (i + 1));
      const bool moves = random() % 2 == 0 && units.size() > near &&
                         units[near].leader == near;
      units.push_back({random() % 30'000 + 1, moves ? near : i,
                       static_cast<uint8_t>(random() % 5)});
      movable |= uint32_t{moves} << i;
    }
    const std::vector<bool> chosen = Choose(units);
    uint32_t as_bits = 0;
    for (size_t i = 0; i < chosen.size(); ++i) {
      as_bits |= uint32_t{chosen[i]} << i;
    }
    ASSERT_EQ(as_bits & ~movable, 0u);
    double best = 0;
    for (uint32_t moves = 0; moves < 1024; ++moves) {
      if ((moves & ~movable) == 0) {
        best = std::min(best, PriceOf(units, moves));
      }
    }
    EXPECT_NEAR(PriceOf(units, as_bits), best, 1e-6);
  }
}

}  // namespace
}  // namespace quire
