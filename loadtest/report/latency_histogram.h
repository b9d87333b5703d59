// SPDX-License-Identifier: Apache-2.0
//
// Latencies of any number of calls in a fixed amount of memory.
#ifndef QUIRE_LOADTEST_REPORT_LATENCY_HISTOGRAM_H_
#define QUIRE_LOADTEST_REPORT_LATENCY_HISTOGRAM_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace quire {

// Counts values in buckets whose width grows with the value, as HdrHistogram
// does: 64 buckets for each doubling, so that a percentile is at most 1/64 of
// itself too high, from 1 us to 2^40 us (12 days; what is longer counts as
// that).
// Thread-compatible.
class LatencyHistogram {
 public:
  // `count` values of that size.
  void Add(uint64_t latency_us, uint64_t count = 1);

  uint64_t count() const { return count_; }

  uint64_t max_us() const { return max_us_; }

  // The upper bound of the bucket below whose end `percent` of all values lie,
  // at most max_us(). 0 if there are none.
  // REQUIRES: 0 < percent <= 100.
  uint64_t PercentileUs(double percent) const;

  // Exact, but for values past 2^64 us in sum. 0 if there are none.
  double mean_us() const;

  // As if each value of `other` had been added here.
  void Merge(const LatencyHistogram& other);

  // What lies in one bucket: values up to `upper_bound_us`, and above that of
  // the bucket before.
  struct Bucket {
    uint64_t upper_bound_us = 0;
    uint64_t count = 0;
  };

  // Buckets that hold anything, ascending; the last bound is max_us() at most.
  std::vector<Bucket> Buckets() const;

 private:
  static constexpr int kSubBits = 6;
  static constexpr int kValueBitsMax = 40;

  static size_t BucketOf(uint64_t value);
  static uint64_t UpperBoundOf(size_t bucket);

  // As long as the highest bucket in use needs.
  std::vector<uint64_t> buckets_;
  uint64_t count_ = 0;
  uint64_t max_us_ = 0;
  uint64_t sum_us_ = 0;
};

}  // namespace quire

#endif  // QUIRE_LOADTEST_REPORT_LATENCY_HISTOGRAM_H_
