// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_RLZ_COVERAGE_REPEAT_TABLE_H_
#define QUIRE_CODECS_RLZ_COVERAGE_REPEAT_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace quire {

// Sums up the worth of repetitions of items (k-mers, by their hashes) in
// bounded memory. Items seen once are stored separately, in two bytes each;
// when space is short, the item of least worth is evicted. Deterministic.
// Thread-compatible.
class RepeatTable {
 public:
  // Position of an item in the table; valid until the next addition.
  using Slot = uint32_t;
  static constexpr Slot kNoSlot = UINT32_MAX;

  // Reserves space for `repeat_count` items seen more than once, and
  // `first_count` seen once, both rounded up to a power of two.
  // REQUIRES: both at least 64 and less than 2^31.
  RepeatTable(uint64_t repeat_count, uint64_t first_count);

  static size_t MemoryBytesFor(uint64_t repeat_count, uint64_t first_count);

  // Prefetches memory for Add() and Find(); call it some dozens of hashes
  // ahead.
  void PrefetchAdd(uint64_t hash) const;
  void PrefetchFind(uint64_t hash) const;

  // Adds `worth` to that of the item, unless it is seen for the first time.
  // REQUIRES: nothing is taken.
  void Add(uint64_t hash, uint32_t worth);

  // Returns kNoSlot if the item is not in the table.
  Slot Find(uint64_t hash) const;

  // Returns 0 while the item is taken.
  uint32_t Worth(Slot slot) const {
    return (At(slot).worth & kTaken) != 0 ? 0 : At(slot).worth;
  }

  void Take(Slot slot) { At(slot).worth |= kTaken; }

  void GiveBack(Slot slot) { At(slot).worth &= ~kTaken; }

 private:
  static constexpr uint32_t kTaken = uint32_t{1} << 31;
  static constexpr uint32_t kWorthMax = kTaken - 1;
  // Number of entries in a cache line.
  static constexpr size_t kBucketSize = 8;

  struct Entry {
    // Never 0 in a used entry.
    uint32_t tag = 0;
    uint32_t worth = 0;
  };

  struct alignas(64) Bucket {
    std::array<Entry, kBucketSize> entries;
  };

  size_t BucketOf(uint64_t hash) const { return hash >> 32 & bucket_mask_; }

  const Entry& At(Slot slot) const {
    return buckets_[slot / kBucketSize].entries[slot % kBucketSize];
  }

  Entry& At(Slot slot) {
    return buckets_[slot / kBucketSize].entries[slot % kBucketSize];
  }

  // Returns the bits below those that choose the bucket; 0 and 1 are the same.
  static uint32_t TagOf(uint64_t hash) {
    const auto low = static_cast<uint32_t>(hash);
    return low == 0 ? 1 : low;
  }

  uint64_t bucket_mask_;
  uint64_t first_mask_;
  std::vector<Bucket> buckets_;
  // Tags of items that were seen once; a later item replaces an earlier one.
  std::vector<uint16_t> firsts_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_COVERAGE_REPEAT_TABLE_H_
