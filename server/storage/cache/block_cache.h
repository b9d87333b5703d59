// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_STORAGE_CACHE_BLOCK_CACHE_H_
#define QUIRE_SERVER_STORAGE_CACHE_BLOCK_CACHE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "server/storage/base/block_types.h"

namespace quire {

// Decoded blocks, bounded in bytes, in shards with a lock each.
//
// Policy: S3-FIFO (Yang et al., "FIFO queues are all you need for cache
// eviction", SOSP 2023) with the admission of 2Q (Johnson and Shasha, VLDB
// 1994). New blocks enter a small probation queue, a twentieth of the capacity.
// Evicted ones leave a record in a ghost table; blocks that return while it
// lasts enter the main queue. Repeated use during probation does not count:
// clients that read through a block in small ranges cause it, too, and would
// promote every block they pass. Only while the cache fills up do blocks stay
// on probation longer than its share lasts, and later uses count then. So
// blocks that are used once, or often within a short time, use a twentieth of
// the cache. Blocks of scans only fill free space, where any other block
// displaces them, and evict nothing.
//
// The limit is hard: it covers the charges, kEntryOverheadBytes for each block,
// and the ghost table. Evicted blocks that callers hold are outside the limit.
// Thread-safe. No lock is held while a block is destroyed.
class BlockCache {
 public:
  using BlockPtr = quire::BlockPtr;
  using Hash = uint64_t (*)(const BlockKey&);

  // The entry, its slot in the hash table, the block object and its reference
  // count, including the overhead of malloc.
  static constexpr uint64_t kEntryOverheadBytes = 256;

  struct Options {
    // 0: nothing is ever kept.
    uint64_t capacity_size_bytes = 0;
    // Shards have at least 4 MiB; this is the maximum number.
    uint32_t shards_max = 16;
    // May collide: keys are compared.
    Hash hash = &HashKey;
  };

  enum class Use {
    // Counts as demand for the block.
    kDemand,
    // One pass over everything, which does not predict further use.
    kScan,
  };

  static Use UseOf(FetchClass fetch_class) {
    return fetch_class == FetchClass::kScan ? Use::kScan : Use::kDemand;
  }

  struct Stats {
    uint64_t hits = 0;
    uint64_t evictions = 0;
    uint64_t size_bytes = 0;
    uint64_t blocks = 0;
  };

  explicit BlockCache(const Options& options);
  ~BlockCache();
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;

  // Returns null if the block is not cached. A found block counts as a hit.
  BlockPtr Find(const BlockKey& key, Use use);

  // Offers a block; `charge_bytes` is its memory. An existing block of the key
  // stays. A block larger than the capacity of a shard is not kept.
  void Insert(const BlockKey& key, BlockPtr block, uint64_t charge_bytes,
              Use use);

  // True if the block is cached. Does not count as a use.
  bool Contains(const BlockKey& key) const;

  // Changes the capacity, and evicts the excess before it returns. A cache that
  // grows past its first capacity keeps its number of shards. The ghosts of
  // evicted blocks are lost. No two calls may overlap.
  void Resize(uint64_t capacity_size_bytes);

  uint64_t capacity_size_bytes() const { return capacity_size_bytes_; }

  // Shards in use.
  size_t shard_count() const { return shard_count_; }

  Stats GetStats() const;

  // The same in every process, so that the contents of the cache after a stream
  // of requests are reproducible.
  static uint64_t HashKey(const BlockKey& key);

 private:
  class Shard;

  Shard& ShardOf(uint64_t hash) const;

  const Hash hash_;
  std::atomic<uint64_t> capacity_size_bytes_;
  // Number of shards in use; the others are empty. A power of two.
  std::atomic<size_t> shard_count_;
  std::vector<std::unique_ptr<Shard>> shards_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_CACHE_BLOCK_CACHE_H_
