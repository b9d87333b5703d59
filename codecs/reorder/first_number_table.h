// SPDX-License-Identifier: Apache-2.0
//
// A compact hash table: the first chunk with each hash.
#ifndef QUIRE_CODECS_REORDER_FIRST_NUMBER_TABLE_H_
#define QUIRE_CODECS_REORDER_FIRST_NUMBER_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace quire {

// Maps a hash to its first number. It keeps 42 bits of a hash: about n in 2^42
// of n absent hashes are found by mistake. For callers that verify, or for
// which a mistake is cheap. Memory: 24 KiB, and about 10 bytes per entry,
// hardly more while growing.
// Thread-compatible.
class FirstNumberTable {
 public:
  // Returns the number of `hash`, if any.
  std::optional<uint32_t> Find(uint64_t hash) const;

  // Assigns the number to `hash` unless it has one; returns its number.
  // REQUIRES: number < 2^32 - 1.
  uint32_t Add(uint64_t hash, uint32_t number);

  // Heap memory in use, in bytes.
  size_t MemoryBytes() const { return slot_count_ * sizeof(uint64_t); }

 private:
  // Number of parts, as a power of two: the part that grows is a small fraction
  // of all.
  static constexpr int kPartBits = 10;

  // The key, and the number plus one; 0 for none. Open addressing with linear
  // probing.
  struct Part {
    std::vector<uint64_t> slots;
    size_t used_count = 0;
  };

  static uint32_t KeyOf(uint64_t hash) { return static_cast<uint32_t>(hash); }

  static size_t PartOf(uint64_t hash) { return hash >> (64 - kPartBits); }

  // Returns the slot with the key, or a free one for it. REQUIRES: one is free.
  static size_t SlotOf(const std::vector<uint64_t>& slots, uint32_t key);
  void Grow(Part& part);

  std::array<Part, size_t{1} << kPartBits> parts_;
  // Slots of all parts.
  size_t slot_count_ = 0;
};

}  // namespace quire

#endif  // QUIRE_CODECS_REORDER_FIRST_NUMBER_TABLE_H_
