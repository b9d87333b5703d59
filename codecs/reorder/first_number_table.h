// SPDX-License-Identifier: Apache-2.0
//
// A hash table for many small facts: which chunk had a hash first.
#ifndef QUIRE_CODECS_REORDER_FIRST_NUMBER_TABLE_H_
#define QUIRE_CODECS_REORDER_FIRST_NUMBER_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace quire {

// From a hash to the first number that was given for it. Of a hash it keeps 42
// bits: of n hashes that were never given about n in 2^42 are found all the
// same, so that it suits those who check, or whom a mistake costs little.
// Memory: 24 KiB, and about 10 bytes an entry, hardly more while it grows.
// Thread-compatible.
class FirstNumberTable {
 public:
  // The number of `hash`, if it has one.
  std::optional<uint32_t> Find(uint64_t hash) const;

  // Gives `hash` the number unless it has one, and returns the one it has.
  // REQUIRES: number < 2^32 - 1.
  uint32_t Add(uint64_t hash, uint32_t number);

  // Of the heap.
  size_t MemoryBytes() const { return slot_count_ * sizeof(uint64_t); }

 private:
  // So many tables in one that the one that grows is a small part of all.
  static constexpr int kPartBits = 10;

  // The key, and the number plus one; 0 where there is none. Open addressing
  // with linear probing.
  struct Part {
    std::vector<uint64_t> slots;
    size_t used_count = 0;
  };

  static uint32_t KeyOf(uint64_t hash) { return static_cast<uint32_t>(hash); }

  static size_t PartOf(uint64_t hash) { return hash >> (64 - kPartBits); }

  // The slot that has the key, or the one to put it. REQUIRES: one is free.
  static size_t SlotOf(const std::vector<uint64_t>& slots, uint32_t key);
  void Grow(Part& part);

  std::array<Part, size_t{1} << kPartBits> parts_;
  // Of all parts.
  size_t slot_count_ = 0;
};

}  // namespace quire

#endif  // QUIRE_CODECS_REORDER_FIRST_NUMBER_TABLE_H_
