// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/cache/block_cache.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "codecs/base/checksum.h"
#include "server/storage/cache/block_cache_shard.h"

namespace quire {
namespace {

// A smaller shard holds too few blocks to choose among.
constexpr uint64_t kShardSizeBytesMin = uint64_t{4} << 20;

size_t ShardCount(uint64_t capacity_size_bytes, size_t shards_max) {
  return std::bit_floor(std::clamp<size_t>(
      capacity_size_bytes / kShardSizeBytesMin, 1, shards_max));
}

}  // namespace

BlockCache::BlockCache(const Options& options)
    : hash_(options.hash),
      capacity_size_bytes_(options.capacity_size_bytes),
      shard_count_(ShardCount(options.capacity_size_bytes,
                              std::max(options.shards_max, 1U))) {
  for (size_t i = 0; i < shard_count_; ++i) {
    shards_.push_back(
        std::make_unique<Shard>(capacity_size_bytes_ / shard_count_, options));
  }
}

void BlockCache::Resize(uint64_t capacity_size_bytes) {
  if (capacity_size_bytes == capacity_size_bytes_) {
    return;
  }
  const size_t shard_count = ShardCount(capacity_size_bytes, shards_.size());
  shard_count_ = shard_count;
  capacity_size_bytes_ = capacity_size_bytes;
  // Shards that become unused first, so that others may grow.
  for (size_t i = shards_.size(); i-- > 0;) {
    shards_[i]->Resize(i < shard_count ? capacity_size_bytes / shard_count : 0);
  }
}

BlockCache::~BlockCache() = default;

uint64_t BlockCache::HashKey(const BlockKey& key) {
  // Archives have fewer than 2^40 blocks in a segment.
  const std::array<uint64_t, 3> words = {
      key.source_id, key.block.segment_index,
      key.block.block_index | uint64_t{key.part} << 40};
  return Checksum64(
      {reinterpret_cast<const uint8_t*>(words.data()), sizeof(words)});
}

BlockCache::Shard& BlockCache::ShardOf(uint64_t hash) const {
  // Bits that neither the hash tables nor the ghosts use first.
  return *shards_[(hash >> 48) &
                  (shard_count_.load(std::memory_order_relaxed) - 1)];
}

BlockCache::BlockPtr BlockCache::Find(const BlockKey& key, Use use) {
  return ShardOf(hash_(key)).Find(key, use);
}

void BlockCache::Insert(const BlockKey& key, BlockPtr block,
                        uint64_t charge_bytes, Use use) {
  const uint64_t hash = hash_(key);
  ShardOf(hash).Insert(key, hash, std::move(block),
                       charge_bytes + kEntryOverheadBytes, use);
}

bool BlockCache::Contains(const BlockKey& key) const {
  return ShardOf(hash_(key)).Contains(key);
}

BlockCache::Stats BlockCache::GetStats() const {
  Stats stats;
  for (const auto& shard : shards_) {
    shard->AddTo(stats);
  }
  return stats;
}

}  // namespace quire
