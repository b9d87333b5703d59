// SPDX-License-Identifier: GPL-3.0-or-later
//
// A scheduler, a modelled drive and simulated clients in virtual time: hours of
// a disk's work in a second, equal on every machine.
#ifndef QUIRE_SERVER_STORAGE_SIMULATION_SCHEDULER_SIMULATION_H_
#define QUIRE_SERVER_STORAGE_SIMULATION_SCHEDULER_SIMULATION_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/storage/base/block_types.h"
#include "server/storage/model/drive_model.h"
#include "server/storage/scheduler/scheduler.h"

namespace quire {

// Requests of one kind at random offsets. Sizes are the paper's, 8 to 16 KiB,
// one in four twice that (a 16 KiB range in compressed blocks), or all equal.
struct SimulatedClients {
  FetchClass fetch_class = FetchClass::kInteractive;
  // Requests in total; the simulation ends when those of all clients are
  // served, or of the clients with `decides`.
  uint64_t request_count = 0;
  bool decides = true;
  // Closed loop: this many wait at any time, and the next arrives `think` after
  // an answer. With request_count it is a batch.
  uint64_t outstanding = 0;
  SchedulerTime think{0};
  // Open loop instead, unless 0: arrivals by a Poisson process.
  double per_second = 0;
  // Extent of their reads.
  uint64_t extent_size_bytes = 0;
  // Size of the file's pieces, in shuffled order within the extent; 0: one
  // piece.
  uint64_t piece_size_bytes = 0;
  // True if the scheduler knows their positions.
  bool places_known = false;
  // Size of each request; 0: the paper's sizes.
  uint32_t size_bytes = 0;
};

struct SimulatedTimes {
  uint64_t count = 0;
  double per_second = 0;
  // Waits, from arrival to the end of the read.
  double mean_ms = 0;
  double p50_ms = 0;
  double p99_ms = 0;
  double longest_ms = 0;
};

struct SimulationResult {
  double seconds = 0;
  uint64_t reads = 0;
  uint64_t read_bytes = 0;
  // Most requests waiting at once, in scheduler and drive.
  size_t pending_max = 0;
  // In the order of the given clients.
  std::vector<SimulatedTimes> clients;
};

// Runs until the deciding clients are served. `drive_depth` bounds the reads in
// the drive.
// REQUIRES: scheduler and drive are new; some clients decide.
SimulationResult Simulate(Scheduler& scheduler, DriveModel& drive,
                          uint32_t drive_depth,
                          const std::vector<SimulatedClients>& clients,
                          uint64_t seed);

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_SIMULATION_SCHEDULER_SIMULATION_H_
