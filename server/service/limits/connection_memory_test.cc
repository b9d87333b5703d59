// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/limits/connection_memory.h"

#include <utility>
#include <vector>

#include "gtest/gtest.h"

#include "codecs/base/byte_size.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

constexpr ConnectionCost kCost = {.memory_bytes = 64 * kKiB,
                                  .quota_bytes = 16 * kKiB};

// 32 included connections, and 896 more.
const MemoryPlan kPlan = {.requests_bytes = 4 * kMiB, .cache_bytes = 72 * kMiB};

class ConnectionMemoryTest : public ::testing::Test {
 protected:
  bool is_lent_ = true;
  uint64_t borrowed_bytes_ = 0;
  uint64_t quota_bytes_ = 0;
  ConnectionMemory memory_{
      kPlan, kCost,
      [this](uint64_t bytes) {
        // Never more than both have.
        EXPECT_LE(quota_bytes_,
                  4 * kMiB + std::max(borrowed_bytes_, bytes) / 4);
        if (is_lent_) {
          borrowed_bytes_ = bytes;
        }
        return is_lent_;
      },
      [this](uint64_t bytes) { quota_bytes_ = bytes; }};
};

TEST_F(ConnectionMemoryTest, SomeNeedNothingOfTheCache) {
  EXPECT_EQ(quota_bytes_, 4 * kMiB);
  EXPECT_EQ(memory_.Fit(0), 32u);
  EXPECT_EQ(memory_.Fit(32), 32u);
  EXPECT_EQ(borrowed_bytes_, 0u);
  EXPECT_EQ(quota_bytes_, 4 * kMiB);
}

TEST_F(ConnectionMemoryTest, GrowsAndShrinksInSteps) {
  EXPECT_EQ(memory_.Fit(33), 96u);
  EXPECT_EQ(borrowed_bytes_, 4 * kMiB);
  EXPECT_EQ(quota_bytes_, 5 * kMiB);
  EXPECT_EQ(memory_.Fit(96), 96u);
  EXPECT_EQ(memory_.Fit(97), 160u);
  EXPECT_EQ(memory_.Fit(96), 160u);
  EXPECT_EQ(memory_.Fit(32), 32u);
  EXPECT_EQ(borrowed_bytes_, 0u);
  EXPECT_EQ(quota_bytes_, 4 * kMiB);
}

TEST_F(ConnectionMemoryTest, NeverExceedsItsShare) {
  EXPECT_EQ(memory_.connections_max(), 928u);
  EXPECT_EQ(memory_.Fit(100'000), 928u);
  EXPECT_EQ(borrowed_bytes_, 56 * kMiB);
  EXPECT_EQ(quota_bytes_, 18 * kMiB);
}

TEST_F(ConnectionMemoryTest, KeepsWhatItHasIfArchivesHaveTheRest) {
  EXPECT_EQ(memory_.Fit(96), 96u);
  is_lent_ = false;
  EXPECT_EQ(memory_.Fit(97), 96u);
  EXPECT_EQ(quota_bytes_, 5 * kMiB);
  is_lent_ = true;
  EXPECT_EQ(memory_.Fit(97), 160u);
}

TEST(ConnectionCostTest, TenThousandFitInAGibibyte) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const MemoryPlan plan, PlanMemory(kGiB, {}));
  const auto max_of = [&](const ConnectionCost& cost) {
    return ConnectionMemory(
               plan, cost, [](uint64_t) { return true; }, [](uint64_t) {})
        .connections_max();
  };
  EXPECT_GE(max_of(kPlainConnectionCost), 8'500u);
  EXPECT_GE(max_of(kTlsConnectionCost), 3'300u);
}

}  // namespace
}  // namespace quire
