// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_STORAGE_SIMULATION_FAULT_SHAPE_H_
#define QUIRE_SERVER_STORAGE_SIMULATION_FAULT_SHAPE_H_

#include <cstdint>
#include <random>

#include "server/storage/scheduler/elevator_scheduler.h"
#include "server/storage/scheduler/sweep_queue.h"

namespace quire {

// Parameters of a fault simulation that a seed decides in advance: the file,
// the device's depth and memory, and the arrivals. `sparse`: requests are too
// far apart to be joined, and neither memory nor the queue's bound matters.
struct FaultShape {
  FaultShape(std::mt19937_64& random, bool sparse)
      : blocks(sparse ? 20'000 : 50 + random() % 1000),
        block_size_bytes(static_cast<uint32_t>(512 + random() % 60'000)),
        stride_bytes(
            block_size_bytes +
            (sparse ? 1 << 20 : (random() % 3) * (random() % 100'000))),
        depth(static_cast<uint32_t>(1 + random() % 32)),
        memory_size_bytes_max(uint64_t{32 << 10} << random() % 10),
        arrival_gap_us(random() % 4'000) {
    scheduler = random() % 2 == 0 ? ElevatorScheduler::Options()
                                  : ElevatorScheduler::Options::SolidState();
    scheduler.pending_requests_max =
        sparse ? 1 << 16 : static_cast<uint32_t>(10 + random() % 300);
    if (sparse) {
      depth = 8;
      memory_size_bytes_max = uint64_t{64} << 20;
    }
  }

  uint64_t blocks;
  uint32_t block_size_bytes;
  // Distance between the starts of two blocks.
  uint64_t stride_bytes;
  // Reads in flight at the device, and the memory of their buffers.
  uint32_t depth;
  uint64_t memory_size_bytes_max;
  // Times between requests are drawn from 0 to twice this.
  uint64_t arrival_gap_us;
  ElevatorScheduler::Options scheduler;
};

// Upper bound on reads of any class begun while a request waits, if at most
// `waiting_max` requests waited meanwhile: the bound of SweepQueue for the
// class, times the turns of others between two of its reads.
inline uint64_t WaitBound(FetchClass fetch_class, uint64_t waiting_max) {
  // Turns: others per interactive read; interactive reads per other; batch
  // reads per scan read.
  constexpr uint64_t kOthersTurn = 8;
  constexpr uint64_t kInteractiveTurn = 24 + 1;
  constexpr uint64_t kBatchTurn = 8 + 1;
  const uint64_t own = SweepQueue::ReadsUntilServedMax(waiting_max) + 1;
  switch (fetch_class) {
    case FetchClass::kInteractive:
      return own * (1 + kOthersTurn);
    case FetchClass::kBatch:
      return own * 2 * (1 + kInteractiveTurn);
    case FetchClass::kScan:
      return own * kBatchTurn * (1 + kInteractiveTurn);
  }
  return 0;
}

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_SIMULATION_FAULT_SHAPE_H_
