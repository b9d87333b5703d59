// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_LOADTEST_REQUESTS_ARRIVAL_SCHEDULE_H_
#define QUIRE_LOADTEST_REQUESTS_ARRIVAL_SCHEDULE_H_

#include <cstdint>
#include <memory>

#include "loadtest/requests/load_options.h"
#include "loadtest/requests/random_stream.h"
#include "loadtest/requests/request_log.h"

namespace quire {

// When the arrivals of an open loop are due, one after the other, whatever
// becomes of them. The same seed gives the same times.
// Thread-compatible.
class ArrivalSchedule {
 public:
  // Of the calls of a run; null for a closed loop. `log` as below.
  static std::unique_ptr<ArrivalSchedule> Of(const LoadOptions& options,
                                             const RequestLog* log);

  // `rate`: arrivals a second. `log`, which must outlive the schedule: for
  // arrivals of its times, else unused; it starts over one mean distance after
  // its end, and not before a second is over. REQUIRES: rate > 0, or
  // log->has_times().
  ArrivalSchedule(LoadArrivals arrivals, double rate, uint64_t seed,
                  const RequestLog* log);

  // When the next arrival is due, from the start of all; never less than what
  // the last call gave.
  uint64_t NextNs();

 private:
  const LoadArrivals arrivals_;
  const double gap_ns_;
  const RequestLog* const log_;
  RandomStream random_;
  uint64_t count_ = 0;
  // Of the arrival before, for exponential gaps.
  double time_ns_ = 0;
};

}  // namespace quire

#endif  // QUIRE_LOADTEST_REQUESTS_ARRIVAL_SCHEDULE_H_
