// SPDX-License-Identifier: GPL-3.0-or-later
//
// A scheduler over a failing drive in virtual time. A seed draws everything,
// and each step checks the scheduler's promises.
#ifndef QUIRE_TESTING_STORAGE_FAULT_SIMULATION_H_
#define QUIRE_TESTING_STORAGE_FAULT_SIMULATION_H_

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
  // Unless 0, this many interactive fetches of one client wait at any time, for
  // blocks that are far apart, and none is withdrawn.
  uint64_t closed_loop = 0;
};

struct FaultSimulationResult {
  // The violated promise and its time; empty if none.
  std::string violation;
  // Fetches by result. Their sum is `fetches` unless one was lost.
  uint64_t fetches = 0;
  uint64_t good = 0;
  uint64_t unavailable = 0;
  uint64_t data_loss = 0;
  uint64_t cancelled = 0;
  uint64_t refused = 0;
  // Joined fetches; reads of the device.
  uint64_t joined = 0;
  uint64_t reads = 0;
  uint64_t repeated_reads = 0;
  uint64_t stalls = 0;
  // Maximum number of reads begun while a fetch waited for its own, which
  // counts. At the device's rate this is a time, however long stalls take.
  uint64_t longest_wait_reads = 0;
  uint64_t pending_max = 0;
  // Hash of all events in order: equal for equal runs.
  uint64_t fingerprint = 0;
};

using SchedulerFactory = std::function<std::unique_ptr<Scheduler>(
    const ElevatorScheduler::Options& options)>;

// A thousand fetches or more of several clients and classes arrive, at once or
// over time, often for the same blocks; some are withdrawn. A read takes 0.1 to
// 10 ms, and sometimes 30 s; bad blocks come from a FaultPlan. After an error
// of a joint read the blocks after it are read one by one, as BlockStore does.
// Each is "decoded" for a while with its memory held.
//
// Checks: each fetch ends exactly once, in a way that its block allows. Each
// request is dispatched at most once and never after its cancellation. The
// device has at most its depth, and reads use at most the memory, except for a
// lone one. The device does not idle while a request waits and nothing forbids
// it. Counters equal the state; nothing remains at the end. No wait exceeds
// WaitBound() (fault_simulation.cc).
FaultSimulationResult SimulateFaults(const SchedulerFactory& make_scheduler,
                                     const FaultSimulationOptions& options);

}  // namespace quire

#endif  // QUIRE_TESTING_STORAGE_FAULT_SIMULATION_H_
