// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/coverage/repeat_table.h"

#include <algorithm>
#include <bit>

#include "codecs/base/memory/huge_pages.h"

namespace quire {

RepeatTable::RepeatTable(uint64_t repeat_count, uint64_t first_count)
    : bucket_mask_(std::bit_ceil(repeat_count) / kBucketSize - 1),
      first_mask_(std::bit_ceil(first_count) - 1) {
  const auto allocate = [](auto& table, size_t count) {
    table.reserve(count);
    PreferHugePages({reinterpret_cast<const uint8_t*>(table.data()),
                     count * sizeof(table[0])});
    table.resize(count);
  };
  allocate(buckets_, bucket_mask_ + 1);
  allocate(firsts_, first_mask_ + 1);
}

size_t RepeatTable::MemoryBytesFor(uint64_t repeat_count,
                                   uint64_t first_count) {
  return sizeof(RepeatTable) + std::bit_ceil(repeat_count) * sizeof(Entry) +
         std::bit_ceil(first_count) * sizeof(uint16_t);
}

void RepeatTable::PrefetchAdd(uint64_t hash) const {
  __builtin_prefetch(&firsts_[hash & first_mask_], 1);
  __builtin_prefetch(&buckets_[BucketOf(hash)], 1);
}

void RepeatTable::PrefetchFind(uint64_t hash) const {
  __builtin_prefetch(&buckets_[BucketOf(hash)]);
}

void RepeatTable::Add(uint64_t hash, uint32_t worth) {
  Bucket& bucket = buckets_[BucketOf(hash)];
  const uint32_t tag = TagOf(hash);
  Entry* least = bucket.entries.data();
  for (Entry& entry : bucket.entries) {
    if (entry.tag == tag) {
      entry.worth = static_cast<uint32_t>(
          std::min<uint64_t>(uint64_t{entry.worth} + worth, kWorthMax));
      return;
    }
    // An unused entry is worth 0.
    least = entry.worth < least->worth ? &entry : least;
  }
  // Bits that do not choose the position in `firsts_`.
  const auto first_tag =
      static_cast<uint16_t>(std::max<uint64_t>(hash >> 48, 1));
  uint16_t& first = firsts_[hash & first_mask_];
  if (first != first_tag) {
    first = first_tag;
    return;
  }
  *least = {.tag = tag, .worth = std::max(worth, uint32_t{1})};
}

RepeatTable::Slot RepeatTable::Find(uint64_t hash) const {
  const size_t bucket = BucketOf(hash);
  const uint32_t tag = TagOf(hash);
  for (size_t i = 0; i < kBucketSize; ++i) {
    if (buckets_[bucket].entries[i].tag == tag) {
      return static_cast<Slot>(bucket * kBucketSize + i);
    }
  }
  return kNoSlot;
}

}  // namespace quire
