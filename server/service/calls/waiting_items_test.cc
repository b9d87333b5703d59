// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/calls/waiting_items.h"

#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace quire {
namespace {

using ::testing::ElementsAre;

WaitingItem ItemAt(uint64_t offset, uint64_t tag) {
  WaitingItem item;
  item.tag = tag;
  item.target.range = {{offset}, 1};
  return item;
}

std::vector<uint64_t> PopTags(WaitingItems& queue, size_t count) {
  std::vector<uint64_t> tags;
  for (size_t i = 0; i < count; ++i) {
    tags.push_back(queue.Pop().tag);
  }
  return tags;
}

TEST(WaitingItemsTest, SweepsUpThenWrapsToTheLowest) {
  WaitingItems queue;
  for (const unsigned offset : {50U, 10U, 40U}) {
    queue.Push(ItemAt(offset, offset));
  }
  EXPECT_THAT(PopTags(queue, 2), ElementsAre(10, 40));
  // Those below the sweep wait for the next one.
  for (const unsigned offset : {30U, 45U, 20U, 60U}) {
    queue.Push(ItemAt(offset, offset));
  }
  EXPECT_THAT(PopTags(queue, 5), ElementsAre(45, 50, 60, 20, 30));
  EXPECT_TRUE(queue.empty());
  // It goes on from there.
  queue.Push(ItemAt(29, 29));
  queue.Push(ItemAt(30, 30));
  EXPECT_THAT(PopTags(queue, 2), ElementsAre(30, 29));
}

TEST(WaitingItemsTest, ItemsOfOneOffsetKeepTheirOrder) {
  WaitingItems queue;
  for (uint64_t tag = 0; tag < 5; ++tag) {
    queue.Push(ItemAt(7, tag));
  }
  EXPECT_THAT(PopTags(queue, 2), ElementsAre(0, 1));
  queue.Push(ItemAt(7, 5));
  EXPECT_THAT(PopTags(queue, 4), ElementsAre(2, 3, 4, 5));
}

TEST(WaitingItemsTest, EqualsASortedSweepOfRandomItems) {
  std::mt19937_64 random(17);
  WaitingItems queue;
  std::multimap<uint64_t, uint64_t> expected;
  uint64_t offset = 0;
  for (uint64_t tag = 0; tag < 20'000; ++tag) {
    // Grows to some hundred items, then shrinks to none, and so on.
    const bool grows = tag / 500 % 2 == 0;
    if (random() % 4 < (grows ? 3U : 1U)) {
      const uint64_t at = random() % 300;
      queue.Push(ItemAt(at, tag));
      expected.emplace(at, tag);
    }
    if (expected.empty() || (grows && random() % 2 == 0)) {
      continue;
    }
    auto next = expected.lower_bound(offset);
    if (next == expected.end()) {
      next = expected.begin();
    }
    offset = next->first;
    ASSERT_EQ(queue.Pop().tag, next->second);
    expected.erase(next);
    ASSERT_EQ(queue.empty(), expected.empty());
  }
}

}  // namespace
}  // namespace quire
