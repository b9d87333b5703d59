// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/planner/server_model.h"

#include <algorithm>

namespace quire {

Throughput SolveClosedNetwork(std::span<const Station> stations,
                              uint32_t in_flight) {
  Throughput result;
  double delay = 0;
  std::vector<double> demands;
  double largest = 0;
  for (const Station& station : stations) {
    const double servers = std::max<uint32_t>(station.server_count, 1);
    const double queued = station.demand_seconds / servers;
    demands.push_back(queued);
    delay += station.delay_seconds + station.demand_seconds - queued;
    if (queued > largest) {
      largest = queued;
      result.limit = station.name;
    }
  }
  std::vector<double> lengths(demands.size(), 0);
  for (uint32_t n = 1; n <= in_flight; ++n) {
    double seconds = delay;
    for (size_t i = 0; i < demands.size(); ++i) {
      seconds += demands[i] * (1 + lengths[i]);
    }
    if (seconds <= 0) {
      return result;
    }
    result.seconds = seconds;
    result.per_second = n / seconds;
    for (size_t i = 0; i < demands.size(); ++i) {
      lengths[i] = result.per_second * demands[i] * (1 + lengths[i]);
    }
  }
  return result;
}

}  // namespace quire
