// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_SERVICE_CATALOG_ARCHIVE_TRAFFIC_H_
#define QUIRE_SERVER_SERVICE_CATALOG_ARCHIVE_TRAFFIC_H_

#include <array>
#include <atomic>
#include <cstdint>

#include "server/service/base/thread_shard.h"

namespace quire {

// Counters of calls and bytes read from one archive. They only grow.
// Thread-safe; adding is one relaxed atomic operation on a cache line that few
// threads share.
class ArchiveTraffic {
 public:
  void AddCall() {
    shards_[ThreadShard()].call_count.fetch_add(1, std::memory_order_relaxed);
  }

  // Adds decoded bytes of answers.
  void AddSent(uint64_t size_bytes) {
    shards_[ThreadShard()].sent_bytes.fetch_add(size_bytes,
                                                std::memory_order_relaxed);
  }

  struct Totals {
    uint64_t call_count = 0;
    uint64_t sent_bytes = 0;
  };

  Totals totals() const {
    Totals totals;
    for (const Shard& shard : shards_) {
      totals.call_count += shard.call_count.load(std::memory_order_relaxed);
      totals.sent_bytes += shard.sent_bytes.load(std::memory_order_relaxed);
    }
    return totals;
  }

 private:
  struct alignas(64) Shard {
    std::atomic<uint64_t> call_count{0};
    std::atomic<uint64_t> sent_bytes{0};
  };

  std::array<Shard, kThreadShardCount> shards_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CATALOG_ARCHIVE_TRAFFIC_H_
