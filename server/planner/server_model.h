// SPDX-License-Identifier: GPL-3.0-or-later
//
// How many requests a second a server answers, and how long each takes:
// processors, a drive and a network as stations of a closed queueing network,
// solved by mean-value analysis (Reiser, Lavenberg, "Mean-Value Analysis of
// Closed Multichain Queuing Networks", JACM 1980); several servers of one
// station after Seidmann, Schweitzer, Shalev-Oren (1987).
//
// Pure functions. Times are seconds, sizes bytes.
#ifndef QUIRE_SERVER_PLANNER_SERVER_MODEL_H_
#define QUIRE_SERVER_PLANNER_SERVER_MODEL_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace quire {

struct Station {
  std::string name;
  // What a request takes there, alone.
  double demand_seconds = 0;
  // Requests that it serves side by side; at least 1.
  uint32_t server_count = 1;
  // What a request waits besides, however many there are: latency.
  double delay_seconds = 0;
};

struct Throughput {
  double per_second = 0;
  // Of a request, from being sent to being answered.
  double seconds = 0;
  // The station that limits; the one with the largest demand.
  std::string limit;
};

// `in_flight` requests at any time. 0 in flight, or no demand at all, is
// nothing per second. REQUIRES: values are finite and not negative.
Throughput SolveClosedNetwork(std::span<const Station> stations,
                              uint32_t in_flight);

// What a drive does with random reads of one size.
struct DriveRates {
  // One at a time.
  double lone_seconds = 0;
  // With many waiting, ordered by the elevator.
  double per_second = 0;
  // The same of a batch.
  double batch_per_second = 0;
  // Reading on.
  double sequential_bytes_per_second = 0;
};

}  // namespace quire

#endif  // QUIRE_SERVER_PLANNER_SERVER_MODEL_H_
