// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_SERVICE_BASE_THREAD_SHARD_H_
#define QUIRE_SERVER_SERVICE_BASE_THREAD_SHARD_H_

#include <atomic>
#include <cstddef>

namespace quire {

// Into how many parts that have no cache line in common something is divided
// which every call writes to; a power of two. A line that processors take from
// each other costs more than most of what a short call does.
inline constexpr size_t kThreadShardCount = 8;

// The part of the calling thread, always the same one; threads are spread
// evenly, in the order in which they first ask. Thread-safe.
inline size_t ThreadShard() {
  static std::atomic<size_t> thread_count{0};
  thread_local const size_t shard =
      thread_count.fetch_add(1, std::memory_order_relaxed) % kThreadShardCount;
  return shard;
}

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_BASE_THREAD_SHARD_H_
