// SPDX-License-Identifier: GPL-3.0-or-later
//
// A scheduler, a modelled drive and made-up clients in virtual time: hours of a
// disk's work in a second, the same on every machine.
#ifndef QUIRE_SERVER_STORAGE_SIMULATION_SCHEDULER_SIMULATION_H_
#define QUIRE_SERVER_STORAGE_SIMULATION_SCHEDULER_SIMULATION_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/storage/base/block_types.h"
#include "server/storage/model/drive_model.h"
#include "server/storage/scheduler/scheduler.h"

namespace quire {

// Requests of one kind, at random places. Sizes are the paper's, 8 to 16 KiB,
// one in four twice that (a 16 KiB range in compressed blocks), or all the
// same.
struct SimulatedClients {
  FetchClass fetch_class = FetchClass::kInteractive;
  // Requests in all; the simulation ends when all clients' are served, or when
  // those are that `decides` the end.
  uint64_t request_count = 0;
  bool decides = true;
  // Closed loop: so many wait at any time, and the next comes so long after an
  // answer. With as many as request_count it is a batch.
  uint64_t outstanding = 0;
  SchedulerTime think{0};
  // Open loop instead, if not 0: arrivals by a Poisson process.
  double per_second = 0;
  // Where they read.
  uint64_t extent_size_bytes = 0;
  // What they read is a file in pieces of so many bytes, 0: in one, that lie in
  // no order in the extent; and whether the scheduler knows where.
  uint64_t piece_size_bytes = 0;
  bool places_known = false;
  // Of each request; 0: the paper's.
  uint32_t size_bytes = 0;
};

struct SimulatedTimes {
  uint64_t count = 0;
  double per_second = 0;
  // Of the waits, from arrival to the end of the read.
  double mean_ms = 0;
  double p50_ms = 0;
  double p99_ms = 0;
  double longest_ms = 0;
};

struct SimulationResult {
  double seconds = 0;
  uint64_t reads = 0;
  uint64_t read_bytes = 0;
  // Most that waited at once, in scheduler and drive.
  size_t pending_max = 0;
  // As the clients were given.
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
