// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/read/pinned_blocks.h"

#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr BlockAddress kA = {0, 7};
constexpr BlockAddress kB = {0, 8};
constexpr BlockAddress kC = {1, 0};

class EmptyBlock : public DecodedBlock {
 public:
  ByteView bytes() const override { return {}; }
};

// Returns a size that identifies the block.
uint32_t SizeOf(BlockAddress block) {
  return static_cast<uint32_t>(1'000 + 100 * block.segment_index +
                               block.block_index);
}

std::vector<PlannedSlice> Slices(const std::vector<BlockAddress>& blocks) {
  std::vector<PlannedSlice> slices;
  for (const BlockAddress block : blocks) {
    slices.push_back({.block = block, .fetched_size_bytes = SizeOf(block)});
  }
  return slices;
}

BlockStore::BlockPtr MakeBlock() {
  return std::make_shared<EmptyBlock>();
}

TEST(PinnedBlocksTest, CountsABlockOnceUntilNobodyPinsIt) {
  PinnedBlocks pinned;
  std::vector<BlockStore::BlockPtr> freed;
  EXPECT_EQ(pinned.NewBytes(Slices({kA, kB})), 1'007u + 1'008u);
  pinned.Pin(Slices({kA, kB}));
  EXPECT_EQ(pinned.NewBytes(Slices({kA, kB})), 0u);
  EXPECT_EQ(pinned.NewBytes(Slices({kB, kC})), 1'100u);
  pinned.Pin(Slices({kB, kC}));
  EXPECT_EQ(pinned.block_count(), 3u);
  // The block pinned first is released last.
  EXPECT_EQ(pinned.Unpin({kB, kC}, freed), 1'100u);
  EXPECT_EQ(pinned.NewBytes(Slices({kB, kC})), 1'100u);
  EXPECT_EQ(pinned.Unpin({kA, kB}, freed), 1'007u + 1'008u);
  EXPECT_EQ(pinned.block_count(), 0u);
}

TEST(PinnedBlocksTest, NothingIsPinnedByAnEmptyRange) {
  PinnedBlocks pinned;
  std::vector<BlockStore::BlockPtr> freed;
  EXPECT_EQ(pinned.NewBytes({}), 0u);
  pinned.Pin({});
  EXPECT_EQ(pinned.Unpin({}, freed), 0u);
  EXPECT_EQ(pinned.block_count(), 0u);
}

TEST(PinnedBlocksTest, AnswersKeepTheFirstCopy) {
  PinnedBlocks pinned;
  const BlockStore::BlockPtr first = MakeBlock();
  const BlockStore::BlockPtr other = MakeBlock();
  pinned.Pin(Slices({kA}));
  pinned.Pin(Slices({kA, kB}));
  std::vector<BlockPiece> one = {{first, 1, 2}};
  pinned.Share({kA}, one);
  EXPECT_EQ(one[0].block, first);
  // The cache evicted it; its offset in the block stays.
  std::vector<BlockPiece> two = {{MakeBlock(), 3, 4}, {other, 5, 6}};
  const std::weak_ptr<const DecodedBlock> copy = two[0].block;
  pinned.Share({kA, kB}, two);
  EXPECT_EQ(two[0].block, first);
  EXPECT_EQ(two[0].offset, 3u);
  EXPECT_EQ(two[0].size_bytes, 4u);
  EXPECT_EQ(two[1].block, other);
  EXPECT_TRUE(copy.expired());
}

TEST(PinnedBlocksTest, HandsOverWhatHeldABlockInMemory) {
  PinnedBlocks pinned;
  const BlockStore::BlockPtr block = MakeBlock();
  pinned.Pin(Slices({kA}));
  pinned.Pin(Slices({kA}));
  std::vector<BlockPiece> pieces = {{block, 0, 0}};
  pinned.Share({kA}, pieces);
  std::vector<BlockStore::BlockPtr> freed;
  EXPECT_EQ(pinned.Unpin({kA}, freed), 0u);
  EXPECT_THAT(freed, IsEmpty());
  EXPECT_EQ(pinned.Unpin({kA}, freed), 1'007u);
  EXPECT_THAT(freed, ElementsAre(block));
  // Pinned again, it starts over.
  pinned.Pin(Slices({kA}));
  std::vector<BlockPiece> again = {{MakeBlock(), 0, 0}};
  pinned.Share({kA}, again);
  EXPECT_NE(again[0].block, block);
}

// A failed read has no pieces and was never shared.
TEST(PinnedBlocksTest, ABlockThatNeverCameIsUnpinnedAllTheSame) {
  PinnedBlocks pinned;
  pinned.Pin(Slices({kC}));
  std::vector<BlockStore::BlockPtr> freed;
  EXPECT_EQ(pinned.Unpin({kC}, freed), 1'100u);
  EXPECT_THAT(freed, ElementsAre(nullptr));
}

}  // namespace
}  // namespace quire
