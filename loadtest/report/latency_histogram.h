// SPDX-License-Identifier: Apache-2.0
//
// Latencies of any number of calls in a fixed amount of memory.
#ifndef QUIRE_LOADTEST_REPORT_LATENCY_HISTOGRAM_H_
#define QUIRE_LOADTEST_REPORT_LATENCY_HISTOGRAM_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace quire {

// Counts values in buckets whose width grows with the value, like HdrHistogram:
// 64 buckets per doubling, so that a percentile is at most 1/64 too high, from
// 1 us to 2^40 us (12 days; longer values count as that).
// Thread-compatible.
class LatencyHistogram {
 public:
  void Add(uint64_t latency_us, uint64_t count = 1);

  uint64_t count() const { return count_; }

  uint64_t max_us() const { return max_us_; }

  // Returns the upper bound of the bucket that `percent` of all values do not
  // exceed, at most max_us(). 0 if there are none.
  // REQUIRES: 0 < percent <= 100.
  uint64_t PercentileUs(double percent) const;

  // Exact, unless the sum exceeds 2^64 us. 0 if there are none.
  double mean_us() const;

 private:
  static constexpr int kSubBits = 6;
  static constexpr int kValueBitsMax = 40;

  static size_t BucketOf(uint64_t value);
  static uint64_t UpperBoundOf(size_t bucket);

  // Sized for the highest bucket in use.
  std::vector<uint64_t> buckets_;
  uint64_t count_ = 0;
  uint64_t max_us_ = 0;
  uint64_t sum_us_ = 0;
};

}  // namespace quire

#endif  // QUIRE_LOADTEST_REPORT_LATENCY_HISTOGRAM_H_
