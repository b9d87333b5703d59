// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/blocks/block_cutter.h"

#include <algorithm>
#include <random>
#include <vector>

#include "gtest/gtest.h"

#include "codecs/block_codec.h"
#include "codecs/payload/recipe.h"

namespace quire {
namespace {

constexpr size_t kBlock = 64 << 10;

TEST(BlockCutterTest, CutsEvenlyWithoutMembers) {
  BlockCutter cutter({}, kBlock);
  EXPECT_EQ(cutter.SizeAt(0), kBlock);
  EXPECT_EQ(cutter.SizeAt(kBlock), kBlock);
}

TEST(BlockCutterTest, EndsBeforeAMemberThatReachesOverTheEnd) {
  BlockCutter cutter({{.offset = 60000, .size = 10000, .text_size = 30000}},
                     kBlock);
  EXPECT_EQ(cutter.SizeAt(0), 60000u);
  EXPECT_EQ(cutter.SizeAt(60000), kBlock);
}

TEST(BlockCutterTest, TakesALargeMemberAsAWholeWithItsHeader) {
  BlockCutter cutter({{.offset = 10, .size = 200'000, .text_size = 900'000},
                      {.offset = 200'030, .size = 500, .text_size = 2000}},
                     kBlock);
  EXPECT_EQ(cutter.SizeAt(0), 200'010u);
  EXPECT_EQ(cutter.SizeAt(200'010), kBlock);
}

TEST(BlockCutterTest, BoundsTheInflatedText) {
  std::vector<MemberPlace> members;
  for (uint64_t i = 0; i < 6; ++i) {
    members.push_back(
        {.offset = i * 10000, .size = 9000, .text_size = 100'000});
  }
  BlockCutter cutter(members, kBlock);
  EXPECT_EQ(cutter.SizeAt(0), 20000u);
  EXPECT_EQ(cutter.SizeAt(20000), 20000u);
}

TEST(BlockCutterTest, LeavesAMemberThatFitsNoBlock) {
  BlockCutter cutter(
      {{.offset = 100, .size = 100'000, .text_size = kInflatedLargeSizeMax}},
      kBlock);
  EXPECT_EQ(cutter.SizeAt(0), kBlock);
  // The same from a part of it on.
  EXPECT_EQ(cutter.SizeAt(kBlock), kBlock);
}

TEST(BlockCutterTest, GivesALargeTextABlockOfItsOwn) {
  BlockCutter cutter({{.offset = 600, .size = 300, .text_size = 2000},
                      {.offset = 1000, .size = 100'000, .text_size = 3 << 20},
                      {.offset = 101'000, .size = 300, .text_size = 2000}},
                     kBlock);
  EXPECT_EQ(cutter.SizeAt(0), 1000u);
  EXPECT_EQ(cutter.SizeAt(1000), 100'000u);
  EXPECT_EQ(cutter.SizeAt(101'000), kBlock);
}

// For any members: blocks are within the limits, and a block with a part of an
// inflated member has all of it, unless no block could.
TEST(BlockCutterTest, KeepsItsPromisesForAnyMembers) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    const size_t block = size_t{4096} << random() % 9;
    std::vector<MemberPlace> members;
    uint64_t end = 0;
    for (int i = 0; i < 200; ++i) {
      const auto size = static_cast<uint32_t>(
          64 + random() % (uint64_t{1} << (8 + random() % 13)));
      const auto text_size = static_cast<uint32_t>(std::min<uint64_t>(
          kInflatedLargeSizeMax, size * (1 + random() % 100)));
      const uint64_t offset =
          end + random() % (uint64_t{1} << (1 + random() % 17));
      members.push_back(
          {.offset = offset, .size = size, .text_size = text_size});
      end = offset + size;
    }
    BlockCutter cutter(members, block);
    uint64_t whole_count = 0;
    for (uint64_t start = 0; start < end;) {
      const size_t size = cutter.SizeAt(start);
      ASSERT_GE(size, kCutBlockSizeMin) << seed;
      ASSERT_LE(size, kBlockSizeBytesMax) << seed;
      for (const MemberPlace& member : members) {
        whole_count += member.offset >= start &&
                       member.offset + member.size <= start + size;
      }
      start += size;
    }
    // Few do not fit with the little text before them.
    EXPECT_GE(whole_count, members.size() * 8 / 10) << seed;
  }
}

}  // namespace
}  // namespace quire
