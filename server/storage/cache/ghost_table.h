// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_STORAGE_CACHE_GHOST_TABLE_H_
#define QUIRE_SERVER_STORAGE_CACHE_GHOST_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace quire {

// Remembers the hashes of what was lately evicted, in fixed space: the ghosts
// of S3-FIFO (Yang et al., SOSP 2023, section 4.1). A hash has one bucket of
// kWays slots that it may lie in, where it displaces the oldest; with space for
// twice as many hashes as are asked for, about one in thirty is lost early.
// Of a hash the bucket and the upper 32 bits are kept: two that agree in both
// are taken for the same.
// Thread-compatible.
class GhostTable {
 public:
  static constexpr size_t kWays = 4;
  // What it takes for each hash that it is to hold.
  static constexpr size_t kBytesPerGhost = 16;

  // Holds the last `ghost_count` hashes, but for those lost early.
  explicit GhostTable(size_t ghost_count);

  void Add(uint64_t hash);
  // True, and forgets it, if the hash was among the last `age_max` added.
  bool Take(uint64_t hash, uint64_t age_max);

 private:
  struct Slot {
    uint32_t tag = 0;
    // Of the addition, from 1; 0: empty.
    uint32_t number = 0;
  };

  // A bucket never straddles two cache lines.
  struct alignas(32) Bucket {
    std::array<Slot, kWays> slots;
  };

  // How many additions ago; the largest value if the slot is empty.
  uint32_t AgeOf(const Slot& slot) const;
  Bucket* BucketOf(uint64_t hash);

  std::vector<Bucket> buckets_;
  uint32_t last_number_ = 0;
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_CACHE_GHOST_TABLE_H_
