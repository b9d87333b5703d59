// SPDX-License-Identifier: Apache-2.0
#include "loadtest/requests/arrival_schedule.h"

#include <algorithm>

#include "loadtest/requests/portable_math.h"

namespace quire {
namespace {

// Without it a log of one moment would have no end of arrivals in it.
constexpr uint64_t kRoundNsMin = 1'000'000'000;

}  // namespace

std::unique_ptr<ArrivalSchedule> ArrivalSchedule::Of(const LoadOptions& options,
                                                     const RequestLog* log) {
  if (!options.is_open_loop()) {
    return nullptr;
  }
  return std::make_unique<ArrivalSchedule>(
      options.arrivals,
      options.requests_per_second.value_or(0) /
          static_cast<double>(options.requests_per_call()),
      options.seed, log);
}

ArrivalSchedule::ArrivalSchedule(LoadArrivals arrivals, double rate,
                                 uint64_t seed, const RequestLog* log)
    : arrivals_(arrivals),
      gap_ns_(arrivals == LoadArrivals::kLog ? 0 : 1e9 / rate),
      log_(log),
      // Apart from the numbers that choose what is read.
      random_(RandomAt(seed, ~uint64_t{0})) {}

uint64_t ArrivalSchedule::NextNs() {
  const uint64_t index = count_++;
  switch (arrivals_) {
    case LoadArrivals::kConstant:
      return static_cast<uint64_t>(static_cast<double>(index) * gap_ns_);
    case LoadArrivals::kPoisson:
      time_ns_ -= PortableLog(1 - random_.NextFraction()) * gap_ns_;
      return static_cast<uint64_t>(time_ns_);
    case LoadArrivals::kLog:
      break;
  }
  const uint64_t last_ns = log_->time_ns(log_->size() - 1);
  const uint64_t round_ns =
      std::max(kRoundNsMin, last_ns + last_ns / log_->size());
  return index / log_->size() * round_ns + log_->time_ns(index % log_->size());
}

}  // namespace quire
