// SPDX-License-Identifier: GPL-3.0-or-later
//
// The time of fetches by step.
#ifndef QUIRE_SERVER_STORAGE_FETCH_FETCH_TIMES_H_
#define QUIRE_SERVER_STORAGE_FETCH_FETCH_TIMES_H_

#include <atomic>
#include <chrono>
#include <cstdint>

namespace quire {

// The time of one fetch by step.
struct FetchTime {
  // Waiting for its turn at the drive.
  std::chrono::nanoseconds queue{0};
  // Waiting for the drive.
  std::chrono::nanoseconds device{0};
  // Waiting for a decode thread, and decoding.
  std::chrono::nanoseconds decode{0};
};

// Sums over fetches. Concurrent waits all count, so that the sums may exceed
// the elapsed time. Thread-safe.
class FetchTimes {
 public:
  void Add(const FetchTime& time) {
    queue_ns_.fetch_add(time.queue.count(), std::memory_order_relaxed);
    device_ns_.fetch_add(time.device.count(), std::memory_order_relaxed);
    decode_ns_.fetch_add(time.decode.count(), std::memory_order_relaxed);
    fetch_count_.fetch_add(1, std::memory_order_relaxed);
  }

  uint64_t fetch_count() const {
    return fetch_count_.load(std::memory_order_relaxed);
  }

  FetchTime sum() const {
    return {
        std::chrono::nanoseconds(queue_ns_.load(std::memory_order_relaxed)),
        std::chrono::nanoseconds(device_ns_.load(std::memory_order_relaxed)),
        std::chrono::nanoseconds(decode_ns_.load(std::memory_order_relaxed))};
  }

 private:
  std::atomic<int64_t> queue_ns_{0};
  std::atomic<int64_t> device_ns_{0};
  std::atomic<int64_t> decode_ns_{0};
  std::atomic<uint64_t> fetch_count_{0};
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_FETCH_FETCH_TIMES_H_
