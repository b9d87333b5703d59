// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/coverage/kmer_sampler.h"

#include <algorithm>
#include <array>

#include "codecs/base/check.h"
#include "codecs/base/checksum.h"

namespace quire {
namespace {

using GearTable = std::array<uint32_t, 256>;

// Any fixed table of unrelated numbers works; these are the upper halves of
// SplitMix64's output from 0 on.
constexpr GearTable MakeGearTable() {
  GearTable table = {};
  uint64_t state = 0;
  for (uint32_t& entry : table) {
    state += 0x9E3779B97F4A7C15;
    uint64_t mixed = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB;
    entry = static_cast<uint32_t>(mixed >> 32);
  }
  return table;
}

constexpr GearTable kGearTable = MakeGearTable();

}  // namespace

void SampleKmers(ByteView block, uint32_t interval,
                 std::vector<SampledKmer>& kmers) {
  QUIRE_CHECK(block.size() <= UINT32_MAX);
  static_assert(kKmerSizeBytes == 32, "the gear hash has as many bits");
  kmers.clear();
  if (block.size() < kKmerSizeBytes) {
    return;
  }
  uint32_t gear = 0;
  for (size_t i = 0; i < kKmerSizeBytes - 1; ++i) {
    gear = (gear << 1) + kGearTable[block[i]];
  }
  const uint32_t limit = UINT32_MAX / interval;
  const uint32_t apart = std::max(interval / 4, uint32_t{1});
  const auto size = static_cast<uint32_t>(block.size());
  uint32_t next = 0;
  for (uint32_t i = kKmerSizeBytes - 1; i < size; ++i) {
    gear = (gear << 1) + kGearTable[block[i]];
    if (gear <= limit && i >= next) {
      kmers.push_back({.hash = 0, .end = i + 1});
      next = i + apart;
    }
  }
  for (SampledKmer& kmer : kmers) {
    kmer.hash =
        Checksum64(block.subspan(kmer.end - kKmerSizeBytes, kKmerSizeBytes));
  }
}

}  // namespace quire
