// SPDX-License-Identifier: Apache-2.0
#include "loadtest/migration_bench/migrated_text.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace quire {
namespace {

std::string Noise(size_t size, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string text(size, '\0');
  for (char& c : text) {
    c = static_cast<char>(random());
  }
  return text;
}

// Similar stretches of 8 KiB, equal ones and others, far from each other.
std::string MixedText() {
  std::string text;
  for (uint64_t i = 0; i < 20; ++i) {
    std::string similar = Noise(8192, 1);
    similar.replace(300 * i, 10, "something inserted");
    text += similar;
    text += Noise(20'000 + 100 * i, 100 + i);
    text += Noise(16'384, 2);
  }
  return text;
}

TEST(MigratedTextTest, RecipesGiveTheTextBackWithEveryOption) {
  for (const std::string& text :
       {std::string(), std::string("x"), std::string(100'000, '\0'),
        Noise(50'000, 7), MixedText()}) {
    for (const bool variable : {false, true}) {
      for (const bool drops : {false, true}) {
        for (const bool moves : {false, true}) {
          for (const double share : {0.0, 1.0 / 3, 1.0}) {
            const MigratedText migrated =
                MigrateText(AsBytes(text), {.has_variable_chunks = variable,
                                            .drops_duplicates = drops,
                                            .moves_similar = moves,
                                            .sketch = {},
                                            .moved_share = share});
            ASSERT_EQ(RestoreText(migrated), text);
            if (!drops) {
              ASSERT_EQ(migrated.stored.size(), text.size());
            }
          }
        }
      }
    }
  }
}

TEST(MigratedTextTest, DropsDuplicatesAndMovesSimilarChunksTogether) {
  const std::string text = MixedText();
  const MigratedText kept =
      MigrateText(AsBytes(text), {.moves_similar = false, .sketch = {}});
  // Nineteen times the last stretch comes again.
  EXPECT_LT(kept.stored.size(), text.size() - 19 * 10'000);
  const MigratedText moved = MigrateText(AsBytes(text), {});
  EXPECT_EQ(moved.stored.size(), kept.stored.size());
  EXPECT_GT(moved.runs.size(), kept.runs.size());
  EXPECT_GT(RecipeSizeBytes(moved.runs), RecipeSizeBytes(kept.runs));
}

TEST(MigratedTextTest, LessMovesWithASmallerShare) {
  const std::string text = MixedText();
  size_t before = 0;
  for (const double share : {0.0, 0.3, 1.0}) {
    const MigratedText migrated =
        MigrateText(AsBytes(text), {.sketch = {}, .moved_share = share});
    size_t moved = 0;
    for (size_t i = 0; i < migrated.chunks.size(); ++i) {
      moved += migrated.chunks[i].leader != i ? 1 : 0;
    }
    if (share == 0) {
      EXPECT_EQ(moved, 0u);
    } else {
      EXPECT_GT(moved, before);
    }
    before = moved;
  }
}

TEST(MigratedTextTest, TextInOrderIsOneRun) {
  const std::string text = Noise(300'000, 3);
  const MigratedText migrated =
      MigrateText(AsBytes(text), {.moves_similar = false, .sketch = {}});
  EXPECT_THAT(migrated.runs, testing::ElementsAre(StoredRun{300'000, 0}));
  EXPECT_EQ(RecipeSizeBytes(migrated.runs), 4u);
}

TEST(CostOfReadingTest, CountsBlocksOnceAWindowAndSeeksBetweenThem) {
  // Blocks of 10: the text is stored as 20..39, 0..19, 35..44.
  const std::vector<StoredRun> runs = {{20, 20}, {20, 0}, {10, 35}};
  // One window: blocks 0, 1, 2, 3, 4.
  ReadCost cost = CostOfReading(runs, 0, 100, 10);
  EXPECT_EQ(cost.text_bytes, 50u);
  EXPECT_EQ(cost.blocks, 5u);
  EXPECT_EQ(cost.seeks, 1u);
  // Windows of 20: 2 3, 0 1, 3 4.
  cost = CostOfReading(runs, 0, 20, 10);
  EXPECT_EQ(cost.blocks, 6u);
  EXPECT_EQ(cost.seeks, 3u);
  // From within the second run: 1, then 3 4.
  cost = CostOfReading(runs, 32, 8, 10);
  EXPECT_EQ(cost.text_bytes, 18u);
  EXPECT_EQ(cost.blocks, 3u + 1u);
  cost = CostOfReading(runs, 50, 8, 10);
  EXPECT_EQ(cost.text_bytes + cost.blocks + cost.seeks, 0u);
}

}  // namespace
}  // namespace quire
