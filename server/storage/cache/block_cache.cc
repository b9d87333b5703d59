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

// Below this a shard holds too few blocks to choose among.
constexpr uint64_t kShardSizeBytesMin = uint64_t{4} << 20;

}  // namespace

BlockCache::BlockCache(const Options& options)
    : capacity_size_bytes_(options.capacity_size_bytes), hash_(options.hash) {
  const uint64_t shard_count = std::bit_floor(
      std::clamp<uint64_t>(capacity_size_bytes_ / kShardSizeBytesMin, 1,
                           std::max(options.shards_max, 1U)));
  for (uint64_t i = 0; i < shard_count; ++i) {
    shards_.push_back(
        std::make_unique<Shard>(capacity_size_bytes_ / shard_count, options));
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
  // Bits that neither the hash tables nor the ghosts look at first.
  return *shards_[(hash >> 48) & (shards_.size() - 1)];
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
