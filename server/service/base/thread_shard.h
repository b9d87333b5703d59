// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_SERVICE_BASE_THREAD_SHARD_H_
#define QUIRE_SERVER_SERVICE_BASE_THREAD_SHARD_H_

#include <atomic>
#include <cstddef>

namespace quire {

// Number of shards, without a common cache line, of data that every call
// writes; a power of two. A cache line that processors contend for costs more
// than most work of a short call.
inline constexpr size_t kThreadShardCount = 8;

// Returns the shard of the calling thread, always the same one. Threads are
// spread evenly, in the order of their first calls. Thread-safe.
inline size_t ThreadShard() {
  static std::atomic<size_t> thread_count{0};
  thread_local const size_t shard =
      thread_count.fetch_add(1, std::memory_order_relaxed) % kThreadShardCount;
  return shard;
}

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_BASE_THREAD_SHARD_H_
