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

// The blocks whose keys hash to it: two FIFO queues, of blocks on probation and
// of blocks that were used again, and the traces of evicted ones. Sizes are in
// bytes as charged.
// Thread-safe. Blocks are destroyed without the mutex.
class BlockCache::Shard {
 public:
  // Of the options it takes how to hash and what to keep.
  Shard(uint64_t capacity_size_bytes, const Options& options);

  // As those of BlockCache; `hash` is that of the key.
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
    // `probation_entered_bytes_` when it came.
    uint64_t entered_at_bytes = 0;
    // Uses that count, since it entered its queue, up to kUsesMax.
    uint8_t uses = 0;
    bool on_probation = true;
    bool from_scan = false;
  };

  // Front: in last. Back: out next.
  using Queue = std::list<Entry>;
  // Evicted blocks, to be destroyed after the lock is gone.
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
  // Takes its last entry out of probation's accounts.
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
  // Those of scans are all at the back.
  Queue probation_ ABSL_GUARDED_BY(mutex_);
  Queue main_ ABSL_GUARDED_BY(mutex_);
  GhostTable ghosts_ ABSL_GUARDED_BY(mutex_);
  uint64_t probation_size_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // All that ever came on probation.
  uint64_t probation_entered_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t scan_blocks_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t size_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t hits_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t evictions_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_CACHE_BLOCK_CACHE_SHARD_H_
