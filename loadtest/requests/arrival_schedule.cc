// SPDX-License-Identifier: Apache-2.0
#include "loadtest/requests/arrival_schedule.h"

#include <cmath>

namespace quire {

std::unique_ptr<ArrivalSchedule> ArrivalSchedule::Of(
    const LoadOptions& options) {
  if (!options.is_open_loop()) {
    return nullptr;
  }
  return std::make_unique<ArrivalSchedule>(
      options.arrivals,
      *options.requests_per_second /
          static_cast<double>(options.requests_per_call()),
      options.seed);
}

ArrivalSchedule::ArrivalSchedule(LoadArrivals arrivals, double rate,
                                 uint64_t seed)
    : arrivals_(arrivals),
      gap_ns_(1e9 / rate),
      // Separate from the numbers that select requests.
      random_(RandomAt(seed, ~uint64_t{0})) {}

uint64_t ArrivalSchedule::NextNs() {
  const uint64_t index = count_++;
  if (arrivals_ == LoadArrivals::kConstant) {
    return static_cast<uint64_t>(static_cast<double>(index) * gap_ns_);
  }
  time_ns_ -= std::log1p(-random_.NextFraction()) * gap_ns_;
  return static_cast<uint64_t>(time_ns_);
}

}  // namespace quire
