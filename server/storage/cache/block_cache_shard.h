// SPDX-License-Identifier: GPL-3.0-or-later
//
// One shard of the block cache; see block_cache.h for the policy.
#ifndef QUIRE_SERVER_STORAGE_CACHE_BLOCK_CACHE_SHARD_H_
#define QUIRE_SERVER_STORAGE_CACHE_BLOCK_CACHE_SHARD_H_

#include <cstddef>
#include <cstdint>
#include <list>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"

#include "codecs/base/mutex.h"
#include "server/storage/cache/block_cache.h"
#include "server/storage/cache/ghost_table.h"

namespace quire {

// The blocks whose keys hash to this shard: two FIFO queues, of blocks on
// probation and of blocks that were used again, and the ghosts of evicted ones.
// Sizes are in charged bytes.
// Thread-safe. Blocks are destroyed without the mutex.
class BlockCache::Shard {
 public:
  // Uses the hash function and the admission policy of `options`.
  Shard(uint64_t capacity_size_bytes, const Options& options);

  // See BlockCache; `hash` is that of the key.
  BlockPtr Find(const BlockKey& key, Use use) ABSL_LOCKS_EXCLUDED(mutex_);
  void Insert(const BlockKey& key, uint64_t hash, BlockPtr block,
              uint64_t charge_bytes, Use use) ABSL_LOCKS_EXCLUDED(mutex_);
  bool Contains(const BlockKey& key) const ABSL_LOCKS_EXCLUDED(mutex_);
  void Resize(uint64_t capacity_size_bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // Adds its counts and sizes to `stats`.
  void AddTo(Stats& stats) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Entry {
    BlockKey key;
    uint64_t hash = 0;
    BlockPtr block;
    uint64_t charge_bytes = 0;
    // `probation_entered_bytes_` at its insertion.
    uint64_t entered_at_bytes = 0;
    // Counted uses since it entered its queue, up to kUsesMax.
    uint8_t uses = 0;
    bool on_probation = true;
    bool from_scan = false;
  };

  // Front: last in. Back: next out.
  using Queue = std::list<Entry>;
  // Evicted blocks, to be destroyed after the lock is released.
  using Evicted = absl::InlinedVector<BlockPtr, 8>;

  struct KeyHash {
    Hash hash;

    size_t operator()(const BlockKey& key) const { return hash(key); }
  };

  bool Counts(const Entry& entry) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EvictOne(Evicted& evicted) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool EvictFromProbation(Evicted& evicted)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EvictFromMain(Evicted& evicted) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes its last entry from probation's totals.
  void LeaveProbation() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Remove(Queue& queue, Evicted& evicted)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void SetCapacity(uint64_t capacity_size_bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  // Without the ghosts.
  uint64_t capacity_size_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t probation_size_bytes_max_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<BlockKey, Queue::iterator, KeyHash> index_
      ABSL_GUARDED_BY(mutex_);
  // Blocks of scans are all at the back.
  Queue probation_ ABSL_GUARDED_BY(mutex_);
  Queue main_ ABSL_GUARDED_BY(mutex_);
  GhostTable ghosts_ ABSL_GUARDED_BY(mutex_);
  uint64_t probation_size_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // Total bytes that ever entered probation.
  uint64_t probation_entered_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t scan_blocks_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t size_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t hits_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t evictions_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_CACHE_BLOCK_CACHE_SHARD_H_
