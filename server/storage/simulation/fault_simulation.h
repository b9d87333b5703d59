// SPDX-License-Identifier: GPL-3.0-or-later
//
// A scheduler over a drive that fails, in virtual time: everything is drawn
// from a seed, and what the scheduler promises is checked at every step.
#ifndef QUIRE_SERVER_STORAGE_SIMULATION_FAULT_SIMULATION_H_
#define QUIRE_SERVER_STORAGE_SIMULATION_FAULT_SIMULATION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "server/storage/scheduler/elevator_scheduler.h"
#include "server/storage/scheduler/scheduler.h"

namespace quire {

struct FaultSimulationOptions {
  uint64_t seed = 1;
  uint64_t fetches = 1'000;
  // Not 0: so many interactive fetches of one client wait at any time, for
  // blocks that lie far apart, and none is withdrawn.
  uint64_t closed_loop = 0;
};

struct FaultSimulationResult {
  // What went wrong, and when; empty if nothing did.
  std::string violation;
  // Fetches by how they ended. Their sum is `fetches` unless one was lost.
  uint64_t fetches = 0;
  uint64_t good = 0;
  uint64_t unavailable = 0;
  uint64_t data_loss = 0;
  uint64_t cancelled = 0;
  uint64_t refused = 0;
  // Of the fetches; of the device's reads.
  uint64_t joined = 0;
  uint64_t reads = 0;
  uint64_t repeated_reads = 0;
  uint64_t stalls = 0;
  // Reads begun while one fetch waited for its own, that included: at most. In
  // time that is so many by the device's rate, however long stalls take.
  uint64_t longest_wait_reads = 0;
  uint64_t pending_max = 0;
  // Of everything that happened, in order: equal for equal runs.
  uint64_t fingerprint = 0;
};

using SchedulerFactory = std::function<std::unique_ptr<Scheduler>(
    const ElevatorScheduler::Options& options)>;

// A thousand fetches or more of several clients and classes come, at once or
// over time, for blocks that often are the same; some are withdrawn. A read
// takes 0.1 to 10 ms, or now and then 30 s; blocks are bad as a FaultPlan has
// it. After an error of a joint read the blocks behind it are read one by one,
// as BlockStore does, and each is "decoded" for a while with its memory
// held.
//
// Checked: each fetch ends exactly once, in a way that its own block allows;
// each request is dispatched at most once and never after it was cancelled; the
// device has at most its depth and reads at most the memory there is, except
// for a lone one; the device does not idle while something waits and nothing
// forbids it; what is counted is what is there; nothing is left at the end. No
// wait is longer than the reads that may go before it: WaitBound()
// (fault_shape.h).
FaultSimulationResult SimulateFaults(const SchedulerFactory& make_scheduler,
                                     const FaultSimulationOptions& options);

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_SIMULATION_FAULT_SIMULATION_H_
