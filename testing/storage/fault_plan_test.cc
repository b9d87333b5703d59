// SPDX-License-Identifier: GPL-3.0-or-later
#include "testing/storage/fault_plan.h"

#include <algorithm>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "testing/base/status_matchers.h"

namespace quire {
namespace {

constexpr uint64_t kBlocks = 500;
constexpr uint32_t kBlockSizeBytes = 1000;
constexpr uint64_t kStrideBytes = 1500;

// Over several seeds, so that each kind of fault occurs.
template <typename Check>
void ForBlocksWith(BlockFault fault, Check check) {
  int found = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const FaultPlan plan(seed, kBlocks, kBlockSizeBytes, kStrideBytes);
    for (uint64_t block = 0; block < kBlocks; ++block) {
      if (plan.FaultOf(block) == fault) {
        check(plan, block);
        ++found;
      }
    }
  }
  EXPECT_GT(found, 0);
}

DeviceResult ReadBlock(const FaultPlan& plan, uint64_t block, uint64_t draw) {
  return plan.Read(plan.OffsetOf(block), kBlockSizeBytes, draw);
}

TEST(FaultPlanTest, EachFaultShowsItselfWhenItsBlockIsRead) {
  ForBlocksWith(BlockFault::kNone, [](const FaultPlan& plan, uint64_t block) {
    QUIRE_EXPECT_OK(ReadBlock(plan, block, 0).status);
    EXPECT_EQ(ReadBlock(plan, block, 0).size_bytes, kBlockSizeBytes);
  });
  ForBlocksWith(
      BlockFault::kUnreadable, [](const FaultPlan& plan, uint64_t block) {
        EXPECT_TRUE(absl::IsUnavailable(ReadBlock(plan, block, 1).status));
        EXPECT_LT(ReadBlock(plan, block, 1).size_bytes, kBlockSizeBytes);
      });
  ForBlocksWith(BlockFault::kWeak, [](const FaultPlan& plan, uint64_t block) {
    EXPECT_TRUE(absl::IsUnavailable(ReadBlock(plan, block, 0).status));
    QUIRE_EXPECT_OK(ReadBlock(plan, block, 1).status);
  });
  ForBlocksWith(BlockFault::kCutOff, [](const FaultPlan& plan, uint64_t block) {
    EXPECT_TRUE(absl::IsDataLoss(ReadBlock(plan, block, 1).status));
    EXPECT_LT(ReadBlock(plan, block, 1).size_bytes, kBlockSizeBytes);
  });
}

TEST(FaultPlanTest, AFlippedBitIsTheOnlyOne) {
  ForBlocksWith(BlockFault::kFlipped, [](const FaultPlan& plan,
                                         uint64_t block) {
    std::vector<uint8_t> bytes(kBlockSizeBytes, 7);
    const DeviceRead read{.offset = FileOffset{plan.OffsetOf(block)},
                          .buffer = bytes};
    DeviceResult result;
    plan.Apply(read, 1, result);
    QUIRE_EXPECT_OK(result.status);
    EXPECT_EQ(std::count(bytes.begin(), bytes.end(), 7), kBlockSizeBytes - 1);
  });
}

TEST(FaultPlanTest, AGarbledBitIsThereAtEveryOtherTry) {
  ForBlocksWith(BlockFault::kCorrupted, [](const FaultPlan& plan,
                                           uint64_t block) {
    for (const uint64_t draw : {uint64_t{0}, uint64_t{1}}) {
      std::vector<uint8_t> bytes(kBlockSizeBytes, 7);
      DeviceResult result;
      plan.Apply({.offset = FileOffset{plan.OffsetOf(block)}, .buffer = bytes},
                 draw, result);
      QUIRE_EXPECT_OK(result.status);
      EXPECT_EQ(std::count(bytes.begin(), bytes.end(), 7),
                kBlockSizeBytes - (draw == 0 ? 1 : 0));
    }
  });
}

TEST(FaultPlanTest, AJointReadEndsAtItsFirstFault) {
  ForBlocksWith(
      BlockFault::kUnreadable, [](const FaultPlan& plan, uint64_t block) {
        if (block == 0 || plan.FaultOf(block - 1) != BlockFault::kNone) {
          return;
        }
        const DeviceResult result =
            plan.Read(plan.OffsetOf(block - 1), 2 * kStrideBytes, 1);
        EXPECT_TRUE(absl::IsUnavailable(result.status));
        EXPECT_GE(result.size_bytes, kStrideBytes);
        EXPECT_LT(result.size_bytes, kStrideBytes + kBlockSizeBytes);
      });
}

TEST(FaultPlanTest, KnowsWhichEndsAreABlocksOwn) {
  using Code = absl::StatusCode;
  const FaultPlan plan(1, kBlocks, kBlockSizeBytes, kStrideBytes);
  for (uint64_t block = 0; block < kBlocks; ++block) {
    const BlockFault fault = plan.FaultOf(block);
    EXPECT_EQ(plan.Allows(block, Code::kOk),
              fault == BlockFault::kNone || fault == BlockFault::kWeak ||
                  fault == BlockFault::kCorrupted);
    EXPECT_EQ(plan.Allows(block, Code::kUnavailable),
              fault == BlockFault::kUnreadable || fault == BlockFault::kWeak);
    EXPECT_EQ(plan.Allows(block, Code::kDataLoss),
              fault == BlockFault::kFlipped ||
                  fault == BlockFault::kCorrupted ||
                  fault == BlockFault::kCutOff);
    EXPECT_FALSE(plan.Allows(block, Code::kInternal));
  }
}

}  // namespace
}  // namespace quire
