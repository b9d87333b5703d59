// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_LOADTEST_REQUESTS_ARRIVAL_SCHEDULE_H_
#define QUIRE_LOADTEST_REQUESTS_ARRIVAL_SCHEDULE_H_

#include <cstdint>
#include <memory>

#include "loadtest/requests/load_options.h"
#include "loadtest/requests/random_stream.h"

namespace quire {

// Due times of the arrivals of an open loop, independent of their results. The
// same seed gives the same times.
// Thread-compatible.
class ArrivalSchedule {
 public:
  // Returns the schedule of a run's calls; null for a closed loop.
  static std::unique_ptr<ArrivalSchedule> Of(const LoadOptions& options);

  // `rate`: arrivals per second. REQUIRES: rate > 0.
  ArrivalSchedule(LoadArrivals arrivals, double rate, uint64_t seed);

  // Returns the due time of the next arrival, from the start; never decreases.
  uint64_t NextNs();

 private:
  const LoadArrivals arrivals_;
  const double gap_ns_;
  RandomStream random_;
  uint64_t count_ = 0;
  // Time of the previous arrival, for exponential gaps.
  double time_ns_ = 0;
};

}  // namespace quire

#endif  // QUIRE_LOADTEST_REQUESTS_ARRIVAL_SCHEDULE_H_
