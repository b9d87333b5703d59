// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/fetch/in_flight_table.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace quire {
namespace {

using ::testing::ElementsAre;

BlockKey Key(uint64_t block_index) {
  return {.source_id = 1, .block = {.block_index = block_index}};
}

class InFlightTableTest : public ::testing::Test {
 protected:
  InFlightBlock& Begin(uint64_t block_index) {
    BlockFetch fetch;
    fetch.key = Key(block_index);
    return table_.Begin(std::move(fetch));
  }

  FetchId Join(InFlightBlock& block) {
    return table_.Join(
        block, block.fetch,
        [this, name = joined_count_++](const auto& /*result*/) {
          told_.push_back(name);
        },
        SchedulerTime(0));
  }

  static void Tell(const InFlightBlock& block) {
    for (const InFlightBlock::Waiter& waiter : block.waiters) {
      waiter.done(absl::CancelledError("test"));
    }
  }

  InFlightTable table_;
  int joined_count_ = 0;
  // Numbers of the answered fetches, from 0.
  std::vector<int> told_;
};

TEST_F(InFlightTableTest, FetchesOfOneBlockShareItsEntry) {
  EXPECT_EQ(table_.Find(Key(7)), nullptr);
  InFlightBlock& block = Begin(7);
  const FetchId first = Join(block);
  EXPECT_EQ(table_.Find(Key(7)), &block);
  EXPECT_EQ(table_.Find(Key(8)), nullptr);
  EXPECT_EQ(table_.stats().joined_fetches, 0U);
  const FetchId second = Join(block);
  EXPECT_NE(first, 0U);
  EXPECT_NE(first, second);
  EXPECT_EQ(table_.fetch_count(), 2U);
  EXPECT_EQ(table_.stats().joined_fetches, 1U);
  EXPECT_EQ(table_.stats().queued_fetches, 2U);

  table_.MarkAtDevice(block);
  EXPECT_EQ(table_.stats().queued_fetches, 0U);
  const std::unique_ptr<InFlightBlock> ended = table_.EndAll(block, true);
  EXPECT_EQ(table_.Find(Key(7)), nullptr);
  EXPECT_EQ(table_.fetch_count(), 0U);
  EXPECT_EQ(table_.stats().recovered_blocks, 0U);
  Tell(*ended);
  EXPECT_THAT(told_, ElementsAre(0, 1));
}

TEST_F(InFlightTableTest, OnlyTheLastCancelledFetchAbandonsTheBlock) {
  InFlightBlock& block = Begin(1);
  const FetchId first = Join(block);
  const FetchId second = Join(block);
  std::optional<InFlightTable::Withdrawn> withdrawn = table_.Cancel(second);
  ASSERT_TRUE(withdrawn.has_value());
  EXPECT_EQ(withdrawn->abandoned, nullptr);
  withdrawn->done(absl::CancelledError("test"));
  EXPECT_THAT(told_, ElementsAre(1));
  EXPECT_EQ(table_.Find(Key(1)), &block);
  // It has ended.
  EXPECT_FALSE(table_.Cancel(second).has_value());

  withdrawn = table_.Cancel(first);
  ASSERT_TRUE(withdrawn.has_value());
  EXPECT_EQ(withdrawn->abandoned.get(), &block);
  EXPECT_EQ(table_.Find(Key(1)), nullptr);
  EXPECT_EQ(table_.fetch_count(), 0U);
  EXPECT_EQ(table_.stats().queued_fetches, 0U);
  EXPECT_EQ(table_.stats().cancelled_fetches, 2U);
}

TEST_F(InFlightTableTest, NothingIsCancelledAtTheDevice) {
  InFlightBlock& block = Begin(1);
  const FetchId id = Join(block);
  table_.MarkAtDevice(block);
  EXPECT_FALSE(table_.Cancel(id).has_value());
  EXPECT_FALSE(table_.Cancel(id + 1).has_value());
  EXPECT_EQ(table_.stats().cancelled_fetches, 0U);
  // A fetch that joins there is at the device as well.
  const FetchId late = Join(block);
  EXPECT_EQ(table_.stats().queued_fetches, 0U);
  EXPECT_FALSE(table_.Cancel(late).has_value());
  EXPECT_EQ(table_.EndAll(block, true)->waiters.size(), 2U);
}

TEST_F(InFlightTableTest, ADamagedBlockReturnsToTheQueueOnce) {
  InFlightBlock& block = Begin(1);
  const FetchId id = Join(block);
  Join(block);
  table_.MarkAtDevice(block);
  ASSERT_TRUE(table_.ReturnToQueue(block));
  EXPECT_EQ(table_.stats().repeated_blocks, 1U);
  EXPECT_EQ(table_.stats().queued_fetches, 2U);
  // Back in the queue its fetches can be cancelled again.
  EXPECT_TRUE(table_.Cancel(id).has_value());
  table_.MarkAtDevice(block);
  EXPECT_FALSE(table_.ReturnToQueue(block));
  EXPECT_TRUE(block.at_device);
  EXPECT_EQ(table_.stats().repeated_blocks, 1U);
  table_.EndAll(block, true);
  EXPECT_EQ(table_.stats().recovered_blocks, 1U);
}

TEST_F(InFlightTableTest, ABlockThatWasRepeatedAtTheDeviceCountsOnce) {
  InFlightBlock& block = Begin(1);
  Join(block);
  table_.MarkAtDevice(block);
  table_.MarkRepeated(block);
  table_.MarkRepeated(block);
  EXPECT_EQ(table_.stats().repeated_blocks, 1U);
  EXPECT_FALSE(table_.ReturnToQueue(block));
  table_.EndAll(block, false);
  EXPECT_EQ(table_.stats().recovered_blocks, 0U);
}

TEST_F(InFlightTableTest, PartsThatWereAskedForLateHaveASecondReadOfTheirOwn) {
  InFlightBlock& block = Begin(1);
  Join(block);
  table_.MarkAtDevice(block);
  table_.MarkRepeated(block);
  block.fetch.key.part = 2;
  const FetchId late = Join(block);
  const std::vector<uint32_t> decoded_parts = {0};
  EXPECT_EQ(table_.End(block, decoded_parts)->waiters.size(), 1U);
  EXPECT_EQ(table_.stats().recovered_blocks, 1U);
  EXPECT_EQ(table_.stats().queued_fetches, 1U);
  table_.MarkAtDevice(block);
  EXPECT_TRUE(table_.ReturnToQueue(block));
  EXPECT_TRUE(table_.Cancel(late).has_value());
}

TEST_F(InFlightTableTest, CancelsAllThatIsNotAtADevice) {
  InFlightBlock& kept = Begin(0);
  const FetchId kept_id = Join(kept);
  table_.MarkAtDevice(kept);
  for (uint64_t i = 1; i <= 3; ++i) {
    Join(Begin(i));
  }
  const auto cancelled = table_.CancelQueued();
  ASSERT_EQ(cancelled.size(), 3U);
  // The caller answers them.
  EXPECT_TRUE(told_.empty());
  EXPECT_EQ(table_.fetch_count(), 1U);
  EXPECT_EQ(table_.stats().queued_fetches, 0U);
  EXPECT_EQ(table_.stats().cancelled_fetches, 3U);
  EXPECT_EQ(table_.Find(Key(0)), &kept);
  EXPECT_EQ(table_.Find(Key(2)), nullptr);
  const auto ended = table_.EndAll(kept, true);
  ASSERT_EQ(ended->waiters.size(), 1U);
  EXPECT_EQ(ended->waiters[0].id, kept_id);
}

}  // namespace
}  // namespace quire
