// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/coverage/repeat_table.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

#include "testing/codecs/codec_test_inputs.h"

namespace quire {
namespace {

TEST(RepeatTableTest, AddsUpAllButTheFirst) {
  RepeatTable table(1024, 65536);
  TestRandom random(9);
  std::vector<uint64_t> hashes(500);
  for (uint64_t& hash : hashes) {
    hash = random();
  }
  for (uint32_t round = 0; round < 5; ++round) {
    for (const uint64_t hash : hashes) {
      table.Add(hash, 100 + round);
    }
  }
  size_t exact = 0;
  for (const uint64_t hash : hashes) {
    const RepeatTable::Slot slot = table.Find(hash);
    exact += slot != RepeatTable::kNoSlot && table.Worth(slot) == 410 ? 1 : 0;
  }
  // Some were evicted by another item at the same position.
  EXPECT_GT(exact, 480);
  EXPECT_EQ(table.Find(random()), RepeatTable::kNoSlot);
}

TEST(RepeatTableTest, KeepsWhatIsWorthMost) {
  RepeatTable table(256, 1 << 16);
  TestRandom random(10);
  std::vector<uint64_t> dear(64);
  for (uint64_t& hash : dear) {
    hash = random();
    for (int i = 0; i < 10; ++i) {
      table.Add(hash, 200);
    }
  }
  for (int i = 0; i < 10000; ++i) {
    const uint64_t cheap = random();
    table.Add(cheap, 50);
    table.Add(cheap, 50);
  }
  size_t found = 0;
  for (const uint64_t hash : dear) {
    found += table.Find(hash) != RepeatTable::kNoSlot ? 1 : 0;
  }
  EXPECT_GT(found, 60);
}

TEST(RepeatTableTest, WhatIsTakenIsWorthNothingUntilGivenBack) {
  RepeatTable table(64, 64);
  for (int i = 0; i < 3; ++i) {
    table.Add(77, UINT32_MAX);
  }
  const RepeatTable::Slot slot = table.Find(77);
  ASSERT_NE(slot, RepeatTable::kNoSlot);
  const uint32_t worth = table.Worth(slot);
  EXPECT_GT(worth, uint32_t{1} << 30);
  table.Take(slot);
  EXPECT_EQ(table.Worth(slot), 0);
  table.GiveBack(slot);
  EXPECT_EQ(table.Worth(slot), worth);
}

}  // namespace
}  // namespace quire
