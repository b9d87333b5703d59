// SPDX-License-Identifier: GPL-3.0-or-later
//
// Hundreds of seeds in virtual time. QUIRE_SIMULATION_SEEDS=n runs n of them,
// QUIRE_SIMULATION_SEED=n only that one.
#include "testing/storage/fault_simulation.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

#include "testing/base/test_level.h"
#include "testing/storage/fault_plan.h"

namespace quire {
namespace {

std::unique_ptr<Scheduler> MakeElevator(
    const ElevatorScheduler::Options& options) {
  return std::make_unique<ElevatorScheduler>(options);
}

TEST(FaultSimulationTest, TheElevatorKeepsItsPromisesWhateverFails) {
  FaultSimulationResult sum;
  const std::vector<uint64_t> seeds =
      SimulationSeeds(static_cast<uint64_t>(TestRounds(50, 100)));
  for (const uint64_t seed : seeds) {
    const FaultSimulationResult result =
        SimulateFaults(MakeElevator, {.seed = seed});
    ASSERT_EQ(result.violation, "") << HowToRepeat(seed);
    ASSERT_EQ(result.good + result.unavailable + result.data_loss +
                  result.cancelled + result.refused,
              result.fetches)
        << HowToRepeat(seed);
    sum.good += result.good;
    sum.unavailable += result.unavailable;
    sum.data_loss += result.data_loss;
    sum.cancelled += result.cancelled;
    sum.refused += result.refused;
    sum.joined += result.joined;
    sum.repeated_reads += result.repeated_reads;
    sum.stalls += result.stalls;
  }
  if (seeds.size() > 20) {
    // All results occur.
    EXPECT_GT(sum.good, 10 * sum.data_loss);
    for (const uint64_t count :
         {sum.unavailable, sum.data_loss, sum.cancelled, sum.refused,
          sum.joined, sum.repeated_reads, sum.stalls}) {
      EXPECT_GT(count, 2 * seeds.size() / 10);
    }
  }
}

TEST(FaultSimulationTest, ASeedIsOneRun) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const uint64_t once =
        SimulateFaults(MakeElevator, {.seed = seed}).fingerprint;
    EXPECT_EQ(SimulateFaults(MakeElevator, {.seed = seed}).fingerprint, once);
    EXPECT_NE(SimulateFaults(MakeElevator, {.seed = seed + 1}).fingerprint,
              once);
  }
}

// With a constant number of waiting requests, each begins within 2.2 times that
// many reads and a sweep's base of 64, including faults and repeated reads. Its
// wait is at most that over the device's rate, plus stalls. (2.2 times alone
// fails for some of 600 seeds.)
TEST(FaultSimulationTest, WaitsAreAsLongAsTheQueue) {
  for (const uint64_t seed : SimulationSeeds(6)) {
    for (const uint64_t outstanding : std::vector<uint64_t>{64, 256}) {
      const FaultSimulationResult result =
          SimulateFaults(MakeElevator, {.seed = seed,
                                        .fetches = 10 * outstanding,
                                        .closed_loop = outstanding});
      ASSERT_EQ(result.violation, "") << HowToRepeat(seed);
      EXPECT_LE(result.longest_wait_reads, 22 * outstanding / 10 + 64)
          << HowToRepeat(seed);
      EXPECT_GT(result.longest_wait_reads, outstanding);
    }
  }
}

// Schedulers that break one promise each; the simulation must detect it.
class BrokenScheduler final : public Scheduler {
 public:
  // May change the limits of Dispatch(), or its result.
  using Asking = std::function<void(DispatchLimits&)>;
  using Returning = std::function<void(std::vector<ScheduledRead>&)>;

  BrokenScheduler(const ElevatorScheduler::Options& options, Asking asking,
                  Returning returning)
      : inner_(options),
        asking_(std::move(asking)),
        returning_(std::move(returning)) {}

  absl::Status Push(SchedulerTime now,
                    const ScheduledRequest& request) override {
    return inner_.Push(now, request);
  }

  bool Cancel(uint64_t request_id) override {
    return inner_.Cancel(request_id);
  }

  void Promote(uint64_t request_id, FetchClass fetch_class) override {
    inner_.Promote(request_id, fetch_class);
  }

  std::vector<ScheduledRead> Dispatch(SchedulerTime now,
                                      const DispatchLimits& limits) override {
    DispatchLimits asked = limits;
    asking_(asked);
    std::vector<ScheduledRead> reads = inner_.Dispatch(now, asked);
    returning_(reads);
    return reads;
  }

  void Complete(SchedulerTime now, uint64_t read_id) override {
    inner_.Complete(now, read_id);
  }

  size_t pending_requests() const override { return inner_.pending_requests(); }

  size_t reads_in_flight() const override { return inner_.reads_in_flight(); }

 private:
  ElevatorScheduler inner_;
  const Asking asking_;
  const Returning returning_;
};

std::string ViolationOf(const BrokenScheduler::Asking& asking,
                        const BrokenScheduler::Returning& returning) {
  std::string violation;
  for (uint64_t seed = 1; seed <= 10 && violation.empty(); ++seed) {
    violation = SimulateFaults(
                    [&](const ElevatorScheduler::Options& options) {
                      return std::make_unique<BrokenScheduler>(options, asking,
                                                               returning);
                    },
                    {.seed = seed, .fetches = 500})
                    .violation;
  }
  return violation;
}

void AsIs(DispatchLimits& /*limits*/) {}

void AllOfThem(std::vector<ScheduledRead>& /*reads*/) {}

TEST(FaultSimulationTest, ABrokenSchedulerIsFoundOut) {
  EXPECT_EQ(ViolationOf(AsIs, AllOfThem), "");
  EXPECT_NE(ViolationOf(AsIs,
                        [](auto& reads) {
                          if (reads.size() > 1) {
                            reads.pop_back();
                          }
                        }),
            "");
  EXPECT_NE(ViolationOf(AsIs,
                        [](auto& reads) {
                          for (ScheduledRead& read : reads) {
                            read.request_ids.push_back(read.request_ids[0]);
                          }
                        }),
            "");
  EXPECT_NE(ViolationOf(AsIs,
                        [](auto& reads) {
                          for (ScheduledRead& read : reads) {
                            --read.size_bytes;
                          }
                        }),
            "");
  EXPECT_NE(
      ViolationOf([](auto& limits) { limits.reads_max = 1000; }, AllOfThem),
      "");
  EXPECT_NE(
      ViolationOf([](auto& limits) { limits.memory_size_bytes_max = 1 << 30; },
                  AllOfThem),
      "");
  EXPECT_NE(ViolationOf([](auto& limits) { limits.reads_max = 0; }, AllOfThem),
            "");
}

}  // namespace
}  // namespace quire
