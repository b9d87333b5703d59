// SPDX-License-Identifier: GPL-3.0-or-later
//
// The pace of scrubbing: size of its reads, and pauses between them.
#ifndef QUIRE_SERVER_SERVICE_SCRUB_PACE_H_
#define QUIRE_SERVER_SERVICE_SCRUB_PACE_H_

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace quire {

// Bytes per read. The read of a client waits for the end of one.
inline constexpr uint64_t kScrubReadSizeBytesMax = uint64_t{256} << 10;

// Holds reads to a rate, in bursts of one second's bytes. A drive moves its arm
// to the first read of a burst, and reads on for the rest: readers rarely meet
// that move. With a pause after each read they would meet one in three.
// Thread-compatible.
class ScrubPace {
 public:
  // Time since any start; never decreases.
  using Time = std::chrono::nanoseconds;

  // REQUIRES: rate_bytes_per_second > 0.
  explicit ScrubPace(uint64_t rate_bytes_per_second)
      : rate_bytes_per_second_(static_cast<double>(rate_bytes_per_second)) {}

  // Notes a read that ended at `now`; returns the time until the next.
  Time PauseAfter(Time now, uint64_t size_bytes) {
    paid_until_ = std::max(paid_until_, now) +
                  Time(static_cast<int64_t>(1e9 / rate_bytes_per_second_ *
                                            static_cast<double>(size_bytes)));
    const Time rest = paid_until_ - now;
    return rest < kBurstTime ? Time(0) : rest;
  }

 private:
  static constexpr Time kBurstTime = std::chrono::seconds(1);

  const double rate_bytes_per_second_;
  // Time at which the rate allows all bytes that were read.
  Time paid_until_{0};
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_SCRUB_PACE_H_
