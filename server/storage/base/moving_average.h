// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_STORAGE_BASE_MOVING_AVERAGE_H_
#define QUIRE_SERVER_STORAGE_BASE_MOVING_AVERAGE_H_

#include <atomic>
#include <chrono>
#include <cstdint>

namespace quire {

// Moving average of a duration: moves towards each added time by a sixteenth of
// the difference, and begins at the first. If threads add at the same moment,
// one time may be lost.
// Thread-safe.
class MovingAverage {
 public:
  // REQUIRES: time >= 0.
  void Add(std::chrono::nanoseconds time) {
    const int64_t mean = mean_ns_.load(std::memory_order_relaxed);
    mean_ns_.store(
        mean == kUnknown ? time.count() : mean + (time.count() - mean) / 16,
        std::memory_order_relaxed);
  }

  // 0 before the first Add().
  std::chrono::nanoseconds mean() const {
    const int64_t mean = mean_ns_.load(std::memory_order_relaxed);
    return std::chrono::nanoseconds(mean == kUnknown ? 0 : mean);
  }

 private:
  static constexpr int64_t kUnknown = -1;

  std::atomic<int64_t> mean_ns_ = kUnknown;
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_BASE_MOVING_AVERAGE_H_
