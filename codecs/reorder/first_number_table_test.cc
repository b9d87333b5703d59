// SPDX-License-Identifier: Apache-2.0
#include "codecs/reorder/first_number_table.h"

#include <map>
#include <random>

#include "gtest/gtest.h"

namespace quire {
namespace {

TEST(FirstNumberTableTest, KeepsTheFirstNumberOfEachHash) {
  std::mt19937_64 random(1);
  FirstNumberTable table;
  std::map<uint64_t, uint32_t> expected;
  std::vector<uint64_t> hashes;
  for (uint32_t i = 0; i < 100'000; ++i) {
    // A third are duplicates.
    const uint64_t hash =
        i % 3 == 2 ? hashes[random() % hashes.size()] : random();
    hashes.push_back(hash);
    table.Add(hash, i);
    expected.try_emplace(hash, i);
    ASSERT_EQ(table.Find(hash), expected[hash]);
  }
  for (const auto& [hash, number] : expected) {
    ASSERT_EQ(table.Find(hash), number);
  }
  for (int i = 0; i < 10'000; ++i) {
    EXPECT_EQ(table.Find(random()), std::nullopt);
  }
}

TEST(FirstNumberTableTest, EmptyHasNone) {
  EXPECT_EQ(FirstNumberTable().Find(0), std::nullopt);
  EXPECT_EQ(FirstNumberTable().MemoryBytes(), 0u);
}

// All in one part and for one slot.
TEST(FirstNumberTableTest, HashesThatMeetAreKeptApart) {
  FirstNumberTable table;
  for (uint32_t i = 0; i < 2000; ++i) {
    table.Add(0xFFFFFFFFu - i, i);
  }
  for (uint32_t i = 0; i < 2000; ++i) {
    ASSERT_EQ(table.Find(0xFFFFFFFFu - i), i);
  }
  EXPECT_EQ(table.Find(0xFFFFFFFFu - 2000), std::nullopt);
  // The largest number.
  table.Add(1, 0xFFFFFFFEu);
  EXPECT_EQ(table.Find(1), 0xFFFFFFFEu);
}

TEST(FirstNumberTableTest, TakesElevenBytesAnEntryAtMost) {
  std::mt19937_64 random(2);
  FirstNumberTable table;
  for (uint32_t i = 1; i <= 4'000'000; ++i) {
    table.Add(random(), i);
    if (i >= 1'000'000 && i % 10'000 == 0) {
      ASSERT_LE(table.MemoryBytes(), 11u * i);
    }
  }
}

}  // namespace
}  // namespace quire
