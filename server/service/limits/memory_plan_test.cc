// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/limits/memory_plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

#include "codecs/base/byte_size.h"
#include "codecs/payload/payload_codec.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

uint64_t SumOf(const MemoryPlan& plan) {
  return plan.base_bytes + plan.requests_bytes + plan.withdrawals_bytes +
         plan.archives_bytes + plan.listed_bytes + plan.reload_bytes +
         plan.in_flight_bytes + plan.buffers_bytes + plan.workspaces_bytes +
         plan.cache_bytes;
}

TEST(MemoryPlanTest, PartsAddUpToTheWhole) {
  for (const uint64_t total_mib :
       {110U, 200U, 300U, 512U, 1024U, 4096U, 65536U}) {
    for (const uint64_t archive_mib : {0U, 1U, 20U, 100U}) {
      const auto plan =
          PlanMemory(total_mib * kMiB, {{"a", archive_mib * kMiB}});
      if (plan.ok()) {
        EXPECT_EQ(SumOf(*plan), total_mib * kMiB);
        EXPECT_GE(plan->cache_bytes, 8 * kMiB);
        EXPECT_GE(plan->workspaces_bytes, kDecodeScratchBytesMax);
        EXPECT_EQ(plan->archives_bytes, archive_mib * kMiB);
      } else {
        EXPECT_LT(total_mib, 300u);
      }
    }
  }
}

TEST(MemoryPlanTest, RefusalNamesTheSum) {
  const auto plan = PlanMemory(kGiB, {{"a", 512 * kMiB}, {"b", 700 * kMiB}});
  EXPECT_THAT(plan, FailsWith(absl::StatusCode::kFailedPrecondition,
                              ::testing::AllOf(
                                  ::testing::HasSubstr("1GiB is too little"),
                                  ::testing::HasSubstr("1.31 GiB are needed"),
                                  ::testing::HasSubstr("archive b 700 MiB"))));
}

TEST(MemoryPlanTest, NamesTheFiveLargestOfMany) {
  std::vector<ArchiveNeed> needs;
  uint64_t size_bytes = 0;
  for (uint64_t i = 0; i < 200; ++i) {
    needs.push_back({absl::StrCat("n", i), (1 + i * 77 % 200) * kMiB});
    size_bytes += needs.back().memory_bytes;
  }
  const auto refused = PlanMemory(kGiB, needs);
  EXPECT_THAT(
      refused,
      FailsWith(
          absl::StatusCode::kFailedPrecondition,
          ::testing::ContainsRegex(
              "archive n[0-9]+ 200 MiB \\+ archive n[0-9]+ 199 MiB .* "
              "archive n[0-9]+ 196 MiB \\+ 195 other archives 18.7 GiB")));
  QUIRE_ASSERT_OK_AND_ASSIGN(const MemoryPlan plan,
                             PlanMemory(std::nullopt, needs));
  EXPECT_EQ(plan.archives_bytes, size_bytes);
  const std::string text = DescribePlan(plan, needs);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 14);
  EXPECT_THAT(text, ::testing::ContainsRegex("195 other archives +18.7 GiB\n"));
}

TEST(MemoryPlanTest, ChoosesWhenToldNothing) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const MemoryPlan plan,
                             PlanMemory(std::nullopt, {{"a", 100 * kMiB}}));
  EXPECT_EQ(SumOf(plan), plan.total_bytes);
  EXPECT_EQ(plan.reload_bytes, 125 * kMiB);
  EXPECT_GE(plan.cache_bytes, 256 * kMiB);
}

TEST(MemoryPlanTest, RulesOfWithdrawalAreCharged) {
  const std::vector<ArchiveNeed> needs = {{"a", 40 * kMiB}};
  QUIRE_ASSERT_OK_AND_ASSIGN(const MemoryPlan without,
                             PlanMemory(400 * kMiB, needs));
  QUIRE_ASSERT_OK_AND_ASSIGN(const MemoryPlan with,
                             PlanMemory(400 * kMiB, needs, false, 30 * kMiB));
  EXPECT_EQ(SumOf(with), 400 * kMiB);
  EXPECT_EQ(with.withdrawals_bytes, 30 * kMiB);
  EXPECT_LT(with.cache_bytes, without.cache_bytes - 15 * kMiB);
  EXPECT_THAT(DescribePlan(with, needs),
              ::testing::ContainsRegex("rules of --withdrawn +30 MiB\n"));
  EXPECT_THAT(DescribePlan(without, needs),
              ::testing::Not(::testing::HasSubstr("withdrawn")));
  EXPECT_THAT(PlanMemory(200 * kMiB, needs, false, 100 * kMiB),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        ::testing::HasSubstr(
                            " + rules of --withdrawn 100 MiB + requests")));
}

TEST(MemoryPlanTest, ASmallArchiveMayGrowByMoreThanAQuarter) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const MemoryPlan plan,
                             PlanMemory(std::nullopt, {{"a", 100 * kKiB}}));
  EXPECT_EQ(plan.reload_bytes, 100 * kKiB + kMiB);
}

TEST(MemoryPlanTest, KeepsMoreForArchivesToCome) {
  for (const uint64_t total_mib : {200u, 400u, 1000u, 4000u}) {
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const MemoryPlan fixed,
        PlanMemory(total_mib * kMiB, {{"a", 40 * kMiB}}));
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const MemoryPlan plan,
        PlanMemory(total_mib * kMiB, {{"a", 40 * kMiB}}, true));
    EXPECT_EQ(SumOf(plan), total_mib * kMiB);
    EXPECT_GE(plan.reload_bytes, fixed.reload_bytes);
    EXPECT_GE(plan.cache_bytes, 8 * kMiB);
  }
  QUIRE_ASSERT_OK_AND_ASSIGN(const MemoryPlan plan,
                             PlanMemory(4120 * kMiB, {{"a", 40 * kMiB}}, true));
  EXPECT_EQ(plan.reload_bytes, 1000 * kMiB);
  // No archives yet.
  QUIRE_EXPECT_OK(PlanMemory(std::nullopt, {}, true));
}

TEST(MemoryPlanTest, AReloadMustFitNextToWhatIsHeld) {
  const MemoryPlan plan = {.archives_bytes = 100 * kMiB,
                           .reload_bytes = 125 * kMiB};
  QUIRE_EXPECT_OK(CheckReload(
      plan, {.served_bytes = 100 * kMiB, .fresh_bytes = 125 * kMiB}));
  EXPECT_THAT(
      CheckReload(plan,
                  {.served_bytes = 100 * kMiB, .fresh_bytes = 125 * kMiB + 1}),
      FailsWith(absl::StatusCode::kFailedPrecondition,
                ::testing::AllOf(::testing::HasSubstr("125 MiB are free"),
                                 ::testing::HasSubstr("more --memory"))));
  EXPECT_THAT(CheckReload(plan, {.served_bytes = 100 * kMiB,
                                 .replaced_bytes = 126 * kMiB,
                                 .fresh_bytes = 1}),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        ::testing::AllOf(
                            ::testing::HasSubstr("0 B are free"),
                            ::testing::HasSubstr("when the calls that read"))));
}

TEST(MemoryPlanTest, TheCacheShrinksBeforeAReloadIsRefused) {
  const MemoryPlan plan = {.archives_bytes = 100 * kMiB,
                           .reload_bytes = 125 * kMiB,
                           .cache_bytes = 250 * kMiB};
  EXPECT_EQ(CacheBytesBeside(plan, 0), 250 * kMiB);
  EXPECT_EQ(CacheBytesBeside(plan, 225 * kMiB), 250 * kMiB);
  EXPECT_EQ(CacheBytesBeside(plan, 226 * kMiB), 249 * kMiB);
  // The cache's minimum in any plan is 8 MiB.
  EXPECT_EQ(CacheBytesBeside(plan, 467 * kMiB), 8 * kMiB);
  EXPECT_EQ(CacheBytesBeside(plan, 1000 * kMiB), 8 * kMiB);
  QUIRE_EXPECT_OK(CheckReload(
      plan, {.served_bytes = 100 * kMiB, .fresh_bytes = 367 * kMiB}));
  EXPECT_THAT(CheckReload(plan, {.served_bytes = 100 * kMiB,
                                 .fresh_bytes = 367 * kMiB + 1}),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        ::testing::HasSubstr("367 MiB are free")));
}

TEST(MemoryPlanTest, GivesUpReloadRoomBeforeRefusing) {
  QUIRE_ASSERT_OK_AND_ASSIGN(const MemoryPlan plan,
                             PlanMemory(700 * kMiB, {{"a", 400 * kMiB}}));
  EXPECT_EQ(plan.reload_bytes, 0u);
  EXPECT_EQ(SumOf(plan), 700 * kMiB);
}

// Archives of a list get what they need, at most half of the free memory.
TEST(MemoryPlanTest, ListedArchivesGetAShare) {
  const auto plan_with = [](uint64_t total_mib, uint64_t sum_mib,
                            bool has_unknown = false) {
    return PlanMemory(total_mib * kMiB, {}, false, 0, 0,
                      {.count = 10,
                       .largest = {"big", 30 * kMiB},
                       .sum_bytes = sum_mib * kMiB,
                       .has_unknown = has_unknown});
  };
  QUIRE_ASSERT_OK_AND_ASSIGN(const MemoryPlan all, plan_with(1000, 100));
  EXPECT_EQ(all.listed_bytes, 100 * kMiB);
  EXPECT_EQ(SumOf(all), 1000 * kMiB);
  QUIRE_ASSERT_OK_AND_ASSIGN(const MemoryPlan half, plan_with(1000, 10'000));
  EXPECT_EQ(SumOf(half), 1000 * kMiB);
  EXPECT_GT(half.listed_bytes, 400 * kMiB);
  EXPECT_LT(half.listed_bytes, 500 * kMiB);
  QUIRE_ASSERT_OK_AND_ASSIGN(const MemoryPlan unknown,
                             plan_with(1000, 30, true));
  EXPECT_EQ(unknown.listed_bytes, half.listed_bytes);
  QUIRE_EXPECT_OK(CheckFitsAlone(half, half.listed_bytes));
  EXPECT_THAT(CheckFitsAlone(half, kGiB),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        ::testing::HasSubstr("restart with more --memory")));
  // At the least, the largest one.
  uint64_t total_mib = 64;
  while (!plan_with(total_mib, 100).ok()) {
    ++total_mib;
  }
  QUIRE_ASSERT_OK_AND_ASSIGN(const MemoryPlan tight, plan_with(total_mib, 100));
  EXPECT_GE(tight.listed_bytes, 30 * kMiB);
  EXPECT_LT(tight.listed_bytes, 31 * kMiB);
  EXPECT_EQ(SumOf(tight), total_mib * kMiB);
  EXPECT_THAT(plan_with(total_mib - 1, 100),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        ::testing::HasSubstr(
                            "the largest of --archives-list, big 30 MiB")));
  // Reloads of other archives leave them their space.
  ReloadNeed need = {.fresh_bytes = all.listed_bytes + all.reload_bytes};
  QUIRE_EXPECT_OK(CheckReload(all, need));
  EXPECT_EQ(CacheBytesBeside(all, all.listed_bytes + all.reload_bytes),
            all.cache_bytes);
  EXPECT_THAT(DescribePlan(all, {}),
              ::testing::HasSubstr("archives of --archives-list"));
}

}  // namespace
}  // namespace quire
