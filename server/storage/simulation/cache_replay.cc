// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/simulation/cache_replay.h"

#include <cstddef>
#include <iterator>
#include <list>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace quire {
namespace {

// One queue: what goes out is at its back.
class QueueCache final : public ReferenceCache {
 public:
  QueueCache(ReferencePolicy policy, uint64_t capacity_blocks)
      : policy_(policy), capacity_blocks_(capacity_blocks) {}

  bool Ask(uint64_t block) override {
    const auto it = index_.find(block);
    if (it != index_.end()) {
      it->second->used = true;
      if (policy_ == ReferencePolicy::kLru) {
        queue_.splice(queue_.begin(), queue_, it->second);
      }
      return true;
    }
    if (index_.size() == capacity_blocks_) {
      Evict();
    }
    queue_.push_front({block, false});
    index_.emplace(block, queue_.begin());
    return false;
  }

 private:
  struct Entry {
    uint64_t block = 0;
    bool used = false;
  };

  void Evict() {
    while (policy_ == ReferencePolicy::kClock && queue_.back().used) {
      queue_.back().used = false;
      queue_.splice(queue_.begin(), queue_, std::prev(queue_.end()));
    }
    index_.erase(queue_.back().block);
    queue_.pop_back();
  }

  const ReferencePolicy policy_;
  const uint64_t capacity_blocks_;
  std::list<Entry> queue_;
  absl::flat_hash_map<uint64_t, std::list<Entry>::iterator> index_;
};

class SegmentedLruCache final : public ReferenceCache {
 public:
  explicit SegmentedLruCache(uint64_t capacity_blocks)
      : capacity_blocks_(capacity_blocks),
        kept_blocks_max_(capacity_blocks - capacity_blocks / 5) {}

  bool Ask(uint64_t block) override {
    const auto it = index_.find(block);
    if (it == index_.end()) {
      if (index_.size() == capacity_blocks_) {
        std::list<Entry>& from = fresh_.empty() ? kept_ : fresh_;
        index_.erase(from.back().block);
        from.pop_back();
      }
      fresh_.push_front({block, false});
      index_.emplace(block, fresh_.begin());
      return false;
    }
    Entry& entry = *it->second;
    kept_.splice(kept_.begin(), entry.kept ? kept_ : fresh_, it->second);
    entry.kept = true;
    if (kept_.size() > kept_blocks_max_) {
      kept_.back().kept = false;
      fresh_.splice(fresh_.begin(), kept_, std::prev(kept_.end()));
    }
    return true;
  }

 private:
  struct Entry {
    uint64_t block = 0;
    bool kept = false;
  };

  const uint64_t capacity_blocks_;
  const uint64_t kept_blocks_max_;
  std::list<Entry> fresh_;
  std::list<Entry> kept_;
  absl::flat_hash_map<uint64_t, std::list<Entry>::iterator> index_;
};

class NoText final : public DecodedBlock {
 public:
  ByteView bytes() const override { return {}; }
};

void Count(ReplayResult& result, const CacheRequest& request, bool hit) {
  if (request.counts) {
    ++result.requests;
    result.hits += hit ? 1 : 0;
  }
}

}  // namespace

std::unique_ptr<ReferenceCache> MakeReferenceCache(ReferencePolicy policy,
                                                   uint64_t capacity_blocks) {
  if (policy == ReferencePolicy::kSegmentedLru) {
    return std::make_unique<SegmentedLruCache>(capacity_blocks);
  }
  return std::make_unique<QueueCache>(policy, capacity_blocks);
}

ReplayResult ReplayOnReference(std::span<const CacheRequest> stream,
                               ReferenceCache& cache) {
  ReplayResult result;
  for (const CacheRequest& request : stream) {
    Count(result, request, cache.Ask(request.block));
  }
  return result;
}

ReplayResult ReplayOnBlockCache(std::span<const CacheRequest> stream,
                                BlockCache& cache, uint64_t charge_bytes) {
  const auto block = std::make_shared<const NoText>();
  ReplayResult result;
  for (const CacheRequest& request : stream) {
    const BlockKey key{.source_id = 1, .block = {.block_index = request.block}};
    const bool hit = cache.Find(key, request.use) != nullptr;
    if (!hit) {
      cache.Insert(key, block, charge_bytes, request.use);
    }
    Count(result, request, hit);
  }
  return result;
}

ReplayResult ReplayOnOptimum(std::span<const CacheRequest> stream,
                             uint64_t capacity_blocks) {
  // By request: when its block is next asked for.
  const size_t never = stream.size();
  std::vector<size_t> next_ask(stream.size(), never);
  absl::flat_hash_map<uint64_t, size_t> asked_at;
  for (size_t i = stream.size(); i-- > 0;) {
    const auto [it, is_new] = asked_at.try_emplace(stream[i].block, i);
    if (!is_new) {
      next_ask[i] = std::exchange(it->second, i);
    }
  }
  // A block is worth keeping until its next request, and only if that counts:
  // of such spans as many are kept as fit, by dropping the latest to end.
  std::set<size_t> kept;
  ReplayResult result;
  for (size_t i = 0; i < stream.size(); ++i) {
    Count(result, stream[i], kept.erase(i) > 0);
    const size_t next = next_ask[i];
    if (next == never || !stream[next].counts) {
      continue;
    }
    kept.insert(next);
    if (kept.size() > capacity_blocks) {
      kept.erase(std::prev(kept.end()));
    }
  }
  return result;
}

}  // namespace quire
