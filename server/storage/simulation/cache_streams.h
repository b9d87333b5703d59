// SPDX-License-Identifier: GPL-3.0-or-later
//
// Made-up streams of requests to try caches on; the same on every machine.
#ifndef QUIRE_SERVER_STORAGE_SIMULATION_CACHE_STREAMS_H_
#define QUIRE_SERVER_STORAGE_SIMULATION_CACHE_STREAMS_H_

#include <cstdint>
#include <vector>

#include "server/storage/cache/block_cache.h"

namespace quire {

struct CacheRequest {
  uint64_t block = 0;
  BlockCache::Use use = BlockCache::Use::kDemand;
  // Whether a hit of it is one: those of scans and of the warm-up are not.
  bool counts = true;
};

struct CacheStreamOptions {
  uint64_t blocks = 100'000;
  // Without those of the scan. The first quarter warms the cache up.
  uint64_t requests = 1'000'000;
  // The block of rank k, from 1, is asked for in proportion to k^-exponent; 0:
  // all alike. Ranks are given to blocks at random.
  double zipf_exponent = 0;
  // After so many requests all ranks go to other blocks; 0: never.
  uint64_t shift_interval = 0;
  // A request is for so many blocks in a row, each asked for so many times in
  // succession: clients that read on, in ranges smaller than a block.
  uint64_t run_blocks = 1;
  uint64_t asks_per_block = 1;
  // Blocks of an endless pass over all, read between one request and the next
  // once the cache is warm.
  uint64_t scan_blocks = 0;
  // How often each of them is asked for, as asks_per_block.
  uint64_t scan_asks_per_block = 1;
  // What the cache is told about that pass.
  BlockCache::Use scan_use = BlockCache::Use::kScan;
};

// REQUIRES: blocks, run_blocks and asks_per_block are not 0.
std::vector<CacheRequest> MakeCacheStream(const CacheStreamOptions& options,
                                          uint64_t seed);

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_SIMULATION_CACHE_STREAMS_H_
