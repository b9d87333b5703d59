// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_RLZ_COVERAGE_BLOCK_COST_H_
#define QUIRE_CODECS_RLZ_COVERAGE_BLOCK_COST_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "codecs/base/bytes.h"

namespace quire {

// Estimates the cost of each part of a block if the block is compressed alone:
// matches of earlier text of the block are nearly free, and the cost of other
// bytes follows from their frequency among such bytes. Keeps its memory;
// Thread-compatible.
class BlockCost {
 public:
  // REQUIRES: block_size_bytes_max < 2^24.
  explicit BlockCost(size_t block_size_bytes_max);

  // Analyses `block`, which is not kept.
  // REQUIRES: block.size() is at most the size given to the constructor.
  void Estimate(ByteView block);

  // Returns the cost of the bytes [begin, end) of the block last given to
  // Estimate(), in bits, rounded down. REQUIRES: begin <= end <= its size.
  uint32_t Bits(size_t begin, size_t end) const {
    return (sums_[end] - sums_[begin]) / kUnitsPerBit;
  }

  static size_t MemoryBytesFor(size_t block_size_bytes_max);

 private:
  static constexpr uint32_t kUnitsPerBit = 16;
  static constexpr int kHashBits = 14;

  struct Match {
    uint32_t begin;
    uint32_t end;
  };

  void FindMatches(ByteView block);
  void PriceLiterals(ByteView block);

  // Last position of each hash, plus `base_`.
  std::vector<uint32_t> places_;
  // Position 0 of this block in places_, so that the table need not be cleared
  // for each block.
  uint32_t base_ = 0;
  std::vector<Match> matches_;
  // Cost of each byte value as a literal, in units.
  std::array<uint32_t, 256> literal_units_ = {};
  // sums_[i] is the cost of the first i bytes, in units.
  std::vector<uint32_t> sums_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_COVERAGE_BLOCK_COST_H_
