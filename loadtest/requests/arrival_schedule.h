// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_LOADTEST_REQUESTS_ARRIVAL_SCHEDULE_H_
#define QUIRE_LOADTEST_REQUESTS_ARRIVAL_SCHEDULE_H_

#include <cstdint>
#include <memory>

#include "loadtest/requests/load_options.h"
#include "loadtest/requests/random_stream.h"

namespace quire {

// When the arrivals of an open loop are due, one after the other, whatever
// becomes of them. The same seed gives the same times.
// Thread-compatible.
class ArrivalSchedule {
 public:
  // Schedule for the calls of a run; null for a closed loop.
  static std::unique_ptr<ArrivalSchedule> Of(const LoadOptions& options);

  // `rate`: arrivals per second. REQUIRES: rate > 0.
  ArrivalSchedule(LoadArrivals arrivals, double rate, uint64_t seed);

  // When the next arrival is due, from the start of all; never less than what
  // the last call gave.
  uint64_t NextNs();

 private:
  const LoadArrivals arrivals_;
  const double gap_ns_;
  RandomStream random_;
  uint64_t count_ = 0;
  // Of the arrival before, for exponential gaps.
  double time_ns_ = 0;
};

}  // namespace quire

#endif  // QUIRE_LOADTEST_REQUESTS_ARRIVAL_SCHEDULE_H_
