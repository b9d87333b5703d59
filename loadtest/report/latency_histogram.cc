// SPDX-License-Identifier: Apache-2.0
#include "loadtest/report/latency_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace quire {

// Values below 2^kSubBits have a bucket each. Above, the bits after the leading
// one select the bucket within the doubling.
size_t LatencyHistogram::BucketOf(uint64_t value) {
  value = std::min(value, (uint64_t{1} << kValueBitsMax) - 1);
  const int shift =
      std::max(0, static_cast<int>(std::bit_width(value)) - kSubBits - 1);
  return (static_cast<size_t>(shift) << kSubBits) +
         static_cast<size_t>(value >> shift);
}

uint64_t LatencyHistogram::UpperBoundOf(size_t bucket) {
  constexpr uint64_t kSubCount = uint64_t{1} << kSubBits;
  if (bucket < 2 * kSubCount) {
    return bucket;
  }
  const uint64_t shift = (bucket >> kSubBits) - 1;
  const uint64_t leading = kSubCount + (bucket & (kSubCount - 1));
  return ((leading + 1) << shift) - 1;
}

void LatencyHistogram::Add(uint64_t latency_us, uint64_t count) {
  if (count == 0) {
    return;
  }
  const size_t bucket = BucketOf(latency_us);
  if (bucket >= buckets_.size()) {
    buckets_.resize(bucket + 1);
  }
  buckets_[bucket] += count;
  count_ += count;
  sum_us_ += latency_us * count;
  max_us_ = std::max(max_us_, latency_us);
}

uint64_t LatencyHistogram::PercentileUs(double percent) const {
  const auto wanted = static_cast<uint64_t>(
      std::ceil(percent / 100 * static_cast<double>(count_)));
  uint64_t seen = 0;
  for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    seen += buckets_[bucket];
    if (seen >= wanted && seen > 0) {
      return std::min(UpperBoundOf(bucket), max_us_);
    }
  }
  return max_us_;
}

double LatencyHistogram::mean_us() const {
  return count_ == 0
             ? 0
             : static_cast<double>(sum_us_) / static_cast<double>(count_);
}

}  // namespace quire
