// SPDX-License-Identifier: GPL-3.0-or-later
//
// Durations of operations, counted in buckets.
#ifndef QUIRE_SERVER_STORAGE_BASE_DURATION_HISTOGRAM_H_
#define QUIRE_SERVER_STORAGE_BASE_DURATION_HISTOGRAM_H_

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace quire {

// Ranges from a block in the page cache to a drive that retries for minutes.
// Thread-compatible.
struct DurationHistogram {
  // Upper bounds of the buckets, inclusive, in microseconds, ascending.
  static constexpr std::array<uint64_t, 19> kBoundsUs = {
      25,        50,        100,       250,        500,       1'000,   2'500,
      5'000,     10'000,    25'000,    50'000,     100'000,   250'000, 500'000,
      1'000'000, 2'500'000, 5'000'000, 10'000'000, 30'000'000};

  // Counts per bucket, not cumulative; the last one is above all bounds.
  std::array<uint64_t, kBoundsUs.size() + 1> counts{};
  uint64_t sum_us = 0;

  // Negative durations count as zero.
  void Add(std::chrono::nanoseconds duration) {
    const auto us =
        static_cast<uint64_t>(std::max<int64_t>(duration.count(), 0) / 1000);
    const auto bucket = static_cast<size_t>(
        std::lower_bound(kBoundsUs.begin(), kBoundsUs.end(), us) -
        kBoundsUs.begin());
    ++counts[bucket];
    sum_us += us;
  }
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_BASE_DURATION_HISTOGRAM_H_
