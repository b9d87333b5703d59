// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_STORAGE_CACHE_GHOST_TABLE_H_
#define QUIRE_SERVER_STORAGE_CACHE_GHOST_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace quire {

// Remembers the hashes of recently evicted blocks in fixed space: the ghosts of
// S3-FIFO (Yang et al., SOSP 2023, section 4.1). Each hash has one bucket of
// kWays slots, where it displaces the oldest. The table has space for twice the
// requested hashes, so that about one in thirty is lost early. It stores the
// bucket and the upper 32 bits of a hash; hashes that agree in both count as
// equal.
// Thread-compatible.
class GhostTable {
 public:
  static constexpr size_t kWays = 4;
  // Memory per hash.
  static constexpr size_t kBytesPerGhost = 16;

  // Holds the last `ghost_count` hashes, except those lost early.
  explicit GhostTable(size_t ghost_count);

  void Add(uint64_t hash);
  // Returns true if the hash was among the last `age_max` added, and removes
  // it.
  bool Take(uint64_t hash, uint64_t age_max);

 private:
  struct Slot {
    uint32_t tag = 0;
    // Number of the addition, from 1; 0: empty.
    uint32_t number = 0;
  };

  // A bucket never straddles two cache lines.
  struct alignas(32) Bucket {
    std::array<Slot, kWays> slots;
  };

  // Returns the number of additions since; the maximum if the slot is empty.
  uint32_t AgeOf(const Slot& slot) const;
  Bucket* BucketOf(uint64_t hash);

  std::vector<Bucket> buckets_;
  uint32_t last_number_ = 0;
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_CACHE_GHOST_TABLE_H_
