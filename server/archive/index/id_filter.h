// SPDX-License-Identifier: GPL-3.0-or-later
//
// Tells in one memory access that a segment does not have an id: a look-up in
// an archive of many segments asks each of them.
#ifndef QUIRE_SERVER_ARCHIVE_INDEX_ID_FILTER_H_
#define QUIRE_SERVER_ARCHIVE_INDEX_ID_FILTER_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"

#include "server/archive/index/id_index.h"

namespace quire {

// A blocked Bloom filter (F. Putze, P. Sanders, J. Singler: "Cache-, Hash- and
// Space-Efficient Bloom Filters", WEA 2007): the bits of an id lie in one block
// of 64 bytes. 10 bits for each id; about one of 80 other ids passes.
// Immutable and thread-safe.
class IdFilter {
 public:
  // Hash of an id, for all filters.
  static uint64_t Hash(absl::string_view id);

  // Holds all ids, including those of runs. Time: one cursor step for each.
  explicit IdFilter(const IdIndex& ids);

  // False only if no id has this hash.
  bool MayHave(uint64_t hash) const {
    const Block& block = blocks_[BlockOf(hash)];
    uint64_t missing = 0;
    for (uint32_t i = 0; i < kProbeCount; ++i) {
      const uint64_t bit = BitOf(hash, i);
      missing |= ~block[bit / 64] & uint64_t{1} << (bit % 64);
    }
    return missing == 0;
  }

  // Begins to load the block of an id into the processor's cache.
  void Prefetch(uint64_t hash) const {
    __builtin_prefetch(blocks_[BlockOf(hash)].data());
  }

  uint64_t MemoryBytes() const { return EstimateBytes(id_count_); }

  // MemoryBytes() for that number of ids.
  static uint64_t EstimateBytes(uint64_t id_count) {
    return sizeof(IdFilter) + BlockCount(id_count) * sizeof(Block);
  }

 private:
  struct alignas(64) Block : std::array<uint64_t, 8> {};

  static constexpr uint32_t kBitsPerId = 10;
  static constexpr uint32_t kProbeCount = 6;
  static constexpr uint32_t kBitsPerBlock = 512;

  static uint64_t BlockCount(uint64_t id_count) {
    return id_count * kBitsPerId / kBitsPerBlock + 1;
  }

  // The high bits of the hash choose the block, the low ones the bits.
  uint64_t BlockOf(uint64_t hash) const {
    __extension__ using Wide = unsigned __int128;
    return static_cast<uint64_t>((Wide{hash} * blocks_.size()) >> 64);
  }

  static uint64_t BitOf(uint64_t hash, uint32_t i) {
    // Nine bits each.
    return (hash * 0x9E3779B97F4A7C15 >> (9 * i + 10)) % kBitsPerBlock;
  }

  const uint64_t id_count_;
  std::vector<Block> blocks_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_INDEX_ID_FILTER_H_
