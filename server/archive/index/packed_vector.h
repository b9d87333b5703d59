// SPDX-License-Identifier: GPL-3.0-or-later
//
// Integers in RAM with the bit width of the largest.
#ifndef QUIRE_SERVER_ARCHIVE_INDEX_PACKED_VECTOR_H_
#define QUIRE_SERVER_ARCHIVE_INDEX_PACKED_VECTOR_H_

#include <cstdint>
#include <memory>

namespace quire {

// Movable. Const calls are thread-safe.
class PackedVector {
 public:
  // Empty.
  PackedVector();
  // `count` zeros, with space for values up to `value_max` each.
  PackedVector(uint64_t count, uint64_t value_max);
  PackedVector(PackedVector&&) noexcept;
  PackedVector& operator=(PackedVector&&) noexcept;
  ~PackedVector();

  uint64_t size() const;
  // REQUIRES for both: index < size(), value <= value_max.
  uint64_t operator[](uint64_t index) const;
  void Set(uint64_t index, uint64_t value);

  uint64_t MemoryBytes() const;

 private:
  friend class InvertiblePermutation;
  struct Values;
  std::unique_ptr<Values> values_;
};

// A permutation of 0 ... size() - 1 with an inverse in a few steps, after
// Munro, Raman, Raman and Rao ("Succinct Representations of Permutations",
// ICALP 2003): an eighth more memory, instead of twice the memory. Movable.
// Thread-safe.
class InvertiblePermutation {
 public:
  // The identity, of any size, which takes no memory.
  InvertiblePermutation();
  // REQUIRES: `forward` holds each of 0 ... forward.size() - 1 once.
  explicit InvertiblePermutation(PackedVector forward);
  InvertiblePermutation(InvertiblePermutation&&) noexcept;
  InvertiblePermutation& operator=(InvertiblePermutation&&) noexcept;
  ~InvertiblePermutation();

  // REQUIRES for both: within the permutation's size.
  uint64_t operator[](uint64_t index) const;
  // Returns the index of `value` in at most 16 steps.
  uint64_t IndexOf(uint64_t value) const;

  uint64_t MemoryBytes() const;
  // Approximate MemoryBytes(), rounded up.
  static uint64_t EstimateBytes(uint64_t count);

 private:
  struct Inverse;
  PackedVector forward_;
  std::unique_ptr<const Inverse> inverse_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_INDEX_PACKED_VECTOR_H_
