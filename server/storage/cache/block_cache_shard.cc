// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/cache/block_cache_shard.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace quire {
namespace {

constexpr uint8_t kUsesMax = 3;
// Share of the capacity for new blocks.
constexpr uint64_t kProbationPercent = 5;
// Bytes of capacity per ghost: as many ghosts as there are blocks of 16 KiB.
constexpr uint64_t kRoomPerGhostBytes = 16 << 10;

size_t GhostCount(uint64_t capacity_size_bytes) {
  return static_cast<size_t>(capacity_size_bytes / kRoomPerGhostBytes);
}

}  // namespace

BlockCache::Shard::Shard(uint64_t capacity_size_bytes, const Options& options)
    : index_(0, KeyHash{options.hash}),
      ghosts_(GhostCount(capacity_size_bytes)) {
  MutexLock lock(&mutex_);
  SetCapacity(capacity_size_bytes);
}

void BlockCache::Shard::SetCapacity(uint64_t capacity_size_bytes) {
  capacity_size_bytes_ = capacity_size_bytes - GhostCount(capacity_size_bytes) *
                                                   GhostTable::kBytesPerGhost;
  probation_size_bytes_max_ = capacity_size_bytes_ * kProbationPercent / 100;
}

void BlockCache::Shard::Resize(uint64_t capacity_size_bytes) {
  // Both are destroyed after the lock is released.
  GhostTable ghosts(GhostCount(capacity_size_bytes));
  Evicted evicted;
  MutexLock lock(&mutex_);
  SetCapacity(capacity_size_bytes);
  while (size_bytes_ > capacity_size_bytes_) {
    EvictOne(evicted);
  }
  std::swap(ghosts, ghosts_);
}

BlockCache::BlockPtr BlockCache::Shard::Find(const BlockKey& key, Use use) {
  MutexLock lock(&mutex_);
  const auto it = index_.find(key);
  if (it == index_.end()) {
    return nullptr;
  }
  ++hits_;
  Entry& entry = *it->second;
  if (use == Use::kDemand && entry.uses < kUsesMax && Counts(entry)) {
    ++entry.uses;
  }
  return entry.block;
}

bool BlockCache::Shard::Counts(const Entry& entry) const {
  return !entry.on_probation ||
         probation_entered_bytes_ - entry.entered_at_bytes >
             probation_size_bytes_max_;
}

void BlockCache::Shard::Insert(const BlockKey& key, uint64_t hash,
                               BlockPtr block, uint64_t charge_bytes, Use use) {
  // Create the entry before taking the lock; free evicted blocks after it.
  Queue fresh;
  fresh.push_front({.key = key,
                    .hash = hash,
                    .block = std::move(block),
                    .charge_bytes = charge_bytes,
                    .from_scan = use == Use::kScan});
  Evicted evicted;
  MutexLock lock(&mutex_);
  if (charge_bytes > capacity_size_bytes_ || index_.contains(key)) {
    return;
  }
  fresh.front().entered_at_bytes = probation_entered_bytes_;
  if (use == Use::kScan) {
    if (charge_bytes > capacity_size_bytes_ - size_bytes_) {
      return;
    }
    probation_.splice(probation_.end(), fresh);
    probation_size_bytes_ += charge_bytes;
    ++scan_blocks_;
    index_.emplace(key, std::prev(probation_.end()));
    size_bytes_ += charge_bytes;
    return;
  }
  while (charge_bytes > capacity_size_bytes_ - size_bytes_) {
    EvictOne(evicted);
  }
  const bool returned = ghosts_.Take(hash, index_.size());
  Queue& queue = returned ? main_ : probation_;
  fresh.front().on_probation = !returned;
  if (!returned) {
    probation_size_bytes_ += charge_bytes;
    probation_entered_bytes_ += charge_bytes;
  }
  queue.splice(queue.begin(), fresh);
  index_.emplace(key, queue.begin());
  size_bytes_ += charge_bytes;
}

bool BlockCache::Shard::Contains(const BlockKey& key) const {
  MutexLock lock(&mutex_);
  return index_.contains(key);
}

void BlockCache::Shard::EvictOne(Evicted& evicted) {
  const bool probation_is_full =
      probation_size_bytes_ > probation_size_bytes_max_;
  if (main_.empty() || probation_is_full || scan_blocks_ > 0) {
    if (EvictFromProbation(evicted)) {
      return;
    }
  }
  EvictFromMain(evicted);
}

// Returns false if all blocks on probation were wanted and are in the main
// queue now.
bool BlockCache::Shard::EvictFromProbation(Evicted& evicted) {
  while (!probation_.empty()) {
    Entry& entry = probation_.back();
    LeaveProbation();
    if (entry.uses == 0) {
      if (!entry.from_scan) {
        ghosts_.Add(entry.hash);
      }
      Remove(probation_, evicted);
      return true;
    }
    entry.uses = 0;
    entry.on_probation = false;
    main_.splice(main_.begin(), probation_, std::prev(probation_.end()));
  }
  return false;
}

void BlockCache::Shard::LeaveProbation() {
  const Entry& entry = probation_.back();
  probation_size_bytes_ -= entry.charge_bytes;
  scan_blocks_ -= entry.from_scan ? 1 : 0;
}

void BlockCache::Shard::EvictFromMain(Evicted& evicted) {
  // Ends after at most kUsesMax rounds: each takes a use off the entry.
  while (main_.back().uses > 0) {
    --main_.back().uses;
    main_.splice(main_.begin(), main_, std::prev(main_.end()));
  }
  Remove(main_, evicted);
}

void BlockCache::Shard::Remove(Queue& queue, Evicted& evicted) {
  Entry& entry = queue.back();
  index_.erase(entry.key);
  size_bytes_ -= entry.charge_bytes;
  ++evictions_;
  evicted.push_back(std::move(entry.block));
  queue.pop_back();
}

void BlockCache::Shard::AddTo(Stats& stats) const {
  MutexLock lock(&mutex_);
  stats.hits += hits_;
  stats.evictions += evictions_;
  stats.size_bytes += size_bytes_;
  stats.blocks += index_.size();
}

}  // namespace quire
