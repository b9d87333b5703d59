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

// Decoded blocks, bounded in bytes, in shards that are locked one by one.
//
// Policy: S3-FIFO (Yang et al., "FIFO queues are all you need for cache
// eviction", SOSP 2023) with the admission of 2Q (Johnson and Shasha, VLDB
// 1994). New blocks go to a small probation queue, a twentieth of the capacity,
// and leave behind only a trace in a ghost table; those that return while it
// lasts come to the main queue. What is asked for again soon after it came
// earns nothing by it: clients that read on through a block in small ranges do
// that, too, and would carry all they pass into the main queue. Only while the
// cache fills up do blocks stay on probation longer than its share lasts, and
// then later uses count. So blocks that are asked for once, or often within a
// short time, pass through a twentieth of the cache. Blocks of scans only fill
// free space, where anything displaces them, and evict nothing.
//
// The bound is hard: it covers the charges, kEntryOverheadBytes for each block,
// and the ghost table. Blocks that were evicted live on while someone holds
// them, outside the bound.
// Thread-safe. No lock is held while a block is destroyed.
class BlockCache {
 public:
  using BlockPtr = quire::BlockPtr;
  using Hash = uint64_t (*)(const BlockKey&);

  // The entry itself, its place in the hash table, the block object and its
  // reference count, with what malloc adds.
  static constexpr uint64_t kEntryOverheadBytes = 256;

  struct Options {
    // 0: nothing is ever kept.
    uint64_t capacity_size_bytes = 0;
    // Shards of at least 4 MiB, and at most this many.
    uint32_t shards_max = 16;
    // May collide: keys are compared.
    Hash hash = &HashKey;
  };

  enum class Use {
    // Counts as demand for the block.
    kDemand,
    // One pass over everything: says nothing about what is wanted again.
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

  // Null if the block is not here. A found block counts as a hit.
  BlockPtr Find(const BlockKey& key, Use use);

  // Offers a block; `charge_bytes` is the memory it takes. If the key is here
  // already, the block that is stays. A block larger than the capacity of a
  // shard is not kept.
  void Insert(const BlockKey& key, BlockPtr block, uint64_t charge_bytes,
              Use use);

  // Whether the block is here. Counts as nothing.
  bool Contains(const BlockKey& key) const;

  // Gives the cache another capacity, and evicts what exceeds it before it
  // returns. A cache that grows past its first capacity keeps its number of
  // shards. The traces of evicted blocks are lost. No two calls may overlap.
  void Resize(uint64_t capacity_size_bytes);

  uint64_t capacity_size_bytes() const { return capacity_size_bytes_; }

  // Shards in use.
  size_t shard_count() const { return shard_count_; }

  Stats GetStats() const;

  // The same in every process, so that what the cache keeps of a stream of
  // requests can be told again.
  static uint64_t HashKey(const BlockKey& key);

 private:
  class Shard;

  Shard& ShardOf(uint64_t hash) const;

  const Hash hash_;
  std::atomic<uint64_t> capacity_size_bytes_;
  // Of those below; the others hold nothing. A power of two.
  std::atomic<size_t> shard_count_;
  std::vector<std::unique_ptr<Shard>> shards_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_CACHE_BLOCK_CACHE_H_
