// SPDX-License-Identifier: Apache-2.0
#include "loadtest/requests/load_pacer.h"

#include <cmath>
#include <deque>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace quire {
namespace {

using ::testing::ElementsAre;

constexpr uint64_t kMs = 1'000'000;

// An arrival every ten milliseconds.
DueTimes EveryTenMs() {
  return [count = uint64_t{0}]() mutable { return 10 * kMs * count++; };
}

TEST(LoadPacerTest, ArrivalsHaveExponentialGaps) {
  constexpr int kCount = 100'000;
  DueTimes times = ArrivalsAtRate(1000, 42);
  DueTimes same = ArrivalsAtRate(1000, 42);
  uint64_t before = 0;
  double sum = 0;
  double square_sum = 0;
  int long_count = 0;
  for (int i = 0; i < kCount; ++i) {
    const uint64_t time = times();
    ASSERT_GE(time, before);
    ASSERT_EQ(time, same());
    const double gap = static_cast<double>(time - before) / kMs;
    sum += gap;
    square_sum += gap * gap;
    long_count += gap > 1 ? 1 : 0;
    before = time;
  }
  // An exponential distribution of mean 1: variance 1, P(> 1) = 1 / e.
  EXPECT_NEAR(sum / kCount, 1, 0.02);
  EXPECT_NEAR(square_sum / kCount - 1, 1, 0.05);
  EXPECT_NEAR(static_cast<double>(long_count) / kCount, std::exp(-1), 0.01);
}

TEST(LoadPacerTest, AClosedLoopIsDueWheneverThereIsRoom) {
  LoadPacer pacer(2, nullptr);
  EXPECT_EQ(pacer.NextDueNs(), 0u);
  EXPECT_EQ(pacer.Take(5)->due_ns, 5u);
  EXPECT_EQ(pacer.Take(6)->index, 1u);
  EXPECT_FALSE(pacer.Take(7).has_value());
  EXPECT_FALSE(pacer.NextDueNs().has_value());
  pacer.Finish(100);
  const auto next = pacer.Take(100);
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->index, 2u);
  EXPECT_EQ(next->due_ns, 100u);
  EXPECT_EQ(pacer.held_count() + pacer.late_count(), 0u);
}

TEST(LoadPacerTest, AnOpenLoopWaitsForNothingButTime) {
  LoadPacer pacer(100, EveryTenMs());
  EXPECT_EQ(pacer.Take(0)->due_ns, 0u);
  EXPECT_FALSE(pacer.Take(9 * kMs).has_value());
  EXPECT_EQ(pacer.NextDueNs(), 10 * kMs);
  // Two are due, though none has ended.
  EXPECT_EQ(pacer.Take(20 * kMs)->due_ns, 10 * kMs);
  EXPECT_EQ(pacer.Take(20 * kMs)->due_ns, 20 * kMs);
  EXPECT_FALSE(pacer.Take(20 * kMs).has_value());
  EXPECT_EQ(pacer.outstanding_count(), 3u);
}

// A server that takes 1 ms per call, but stalls for a second from 1 s on. All
// calls due in the stall must show it.
TEST(LoadPacerTest, ChargesAStallToEveryArrivalInIt) {
  constexpr uint64_t kBound = 4;
  LoadPacer pacer(kBound, EveryTenMs());
  pacer.EndAt(300);
  std::deque<LoadPacer::Call> out;
  uint64_t slow_count = 0;
  uint64_t answer_count = 0;
  for (uint64_t now = 0; answer_count < 300; now += kMs / 2) {
    const bool is_stalled = now >= 1000 * kMs && now < 2000 * kMs;
    if (!is_stalled && !out.empty()) {
      slow_count += now - out.front().due_ns > 5 * kMs ? 1 : 0;
      ++answer_count;
      out.pop_front();
      pacer.Finish(now);
    }
    while (const auto call = pacer.Take(now)) {
      out.push_back(*call);
    }
  }
  // 100 arrivals were due in the stall, of which four were in flight; some more
  // were held until the backlog was gone.
  EXPECT_GE(slow_count, 98u);
  EXPECT_LE(slow_count, 110u);
  EXPECT_GE(pacer.held_count(), 95u);
  EXPECT_LE(pacer.held_count(), 110u);
  EXPECT_EQ(pacer.late_count(), 0u);
  EXPECT_TRUE(pacer.is_over());
}

TEST(LoadPacerTest, KnowsItsOwnLateness) {
  LoadPacer pacer(2, EveryTenMs());
  pacer.Take(kMs);
  EXPECT_EQ(pacer.late_count(), 0u);
  pacer.Take(12 * kMs);
  EXPECT_EQ(pacer.late_count(), 1u);
  // Held until 50 ms, which is not its own fault; 2 ms more are.
  pacer.Finish(50 * kMs);
  pacer.Take(50 * kMs + kMs / 2);
  EXPECT_EQ(pacer.held_count(), 1u);
  EXPECT_EQ(pacer.late_count(), 1u);
  pacer.Finish(60 * kMs);
  pacer.Take(62 * kMs);
  EXPECT_EQ(pacer.held_count(), 2u);
  EXPECT_EQ(pacer.late_count(), 2u);
}

TEST(LoadPacerTest, EndsAtItsCountOrWhenStopped) {
  LoadPacer counted(10, EveryTenMs());
  counted.EndAt(2);
  counted.Take(100 * kMs);
  EXPECT_FALSE(counted.is_over());
  counted.Take(100 * kMs);
  EXPECT_TRUE(counted.is_over());
  EXPECT_FALSE(counted.Take(100 * kMs).has_value());
  counted.Stop(1000 * kMs, [](uint64_t) {});
  EXPECT_EQ(counted.unstarted_count(), 0u);

  LoadPacer stopped(1, EveryTenMs());
  stopped.Take(0);
  std::vector<uint64_t> unstarted;
  const auto note = [&](uint64_t due_ns) { unstarted.push_back(due_ns); };
  stopped.Stop(35 * kMs, note);
  stopped.Stop(95 * kMs, note);
  EXPECT_TRUE(stopped.is_over());
  EXPECT_THAT(unstarted, ElementsAre(10 * kMs, 20 * kMs, 30 * kMs));
  EXPECT_EQ(stopped.unstarted_count(), 3u);
  EXPECT_EQ(stopped.started_count(), 1u);
  EXPECT_EQ(stopped.outstanding_count(), 1u);
}

}  // namespace
}  // namespace quire
