// SPDX-License-Identifier: GPL-3.0-or-later
//
// Request streams against the block cache, textbook caches and the best that
// any cache could do; for choosing the block cache's policy by measurement.
#ifndef QUIRE_SERVER_STORAGE_SIMULATION_CACHE_REPLAY_H_
#define QUIRE_SERVER_STORAGE_SIMULATION_CACHE_REPLAY_H_

#include <cstdint>
#include <memory>
#include <span>

#include "server/storage/cache/block_cache.h"
#include "server/storage/simulation/cache_streams.h"

namespace quire {

// A cache of blocks of one size that is told of no scan: each is as good a
// request as any.
// Thread-compatible.
class ReferenceCache {
 public:
  virtual ~ReferenceCache() = default;
  // True for a hit; a block that is not here comes in.
  virtual bool Ask(uint64_t block) = 0;
};

enum class ReferencePolicy {
  kLru,
  kFifo,
  // FIFO in which a block that was asked for gets another round.
  kClock,
  // Two LRU lists: a fifth for the new, the rest for those asked for again
  // (Karedla et al., "Caching strategies to improve disk system performance",
  // 1994).
  kSegmentedLru,
};

// REQUIRES: capacity_blocks > 0.
std::unique_ptr<ReferenceCache> MakeReferenceCache(ReferencePolicy policy,
                                                   uint64_t capacity_blocks);

struct ReplayResult {
  uint64_t hits = 0;
  uint64_t requests = 0;

  double percent() const {
    return requests == 0 ? 0
                         : 100.0 * static_cast<double>(hits) /
                               static_cast<double>(requests);
  }
};

ReplayResult ReplayOnReference(std::span<const CacheRequest> stream,
                               ReferenceCache& cache);

// Each block is charged `charge_bytes`, but takes no such memory.
ReplayResult ReplayOnBlockCache(std::span<const CacheRequest> stream,
                                BlockCache& cache, uint64_t charge_bytes);

// The most hits that a cache of so many blocks can have which knows the future
// and need not keep what it was asked for (Belady, "A study of replacement
// algorithms for a virtual-storage computer", 1966).
ReplayResult ReplayOnOptimum(std::span<const CacheRequest> stream,
                             uint64_t capacity_blocks);

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_SIMULATION_CACHE_REPLAY_H_
