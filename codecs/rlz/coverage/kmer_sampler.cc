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

// Ends that are examined at once, in kStreamCount parts: a gear hash depends on
// the one before it, those of the parts do not depend on each other.
constexpr size_t kStreamCount = 4;
constexpr size_t kStreamSize = 1024;

// Returns the gear hash of the k-mer without its last byte.
uint32_t GearBefore(ByteView block, size_t last) {
  uint32_t gear = 0;
  for (size_t i = last - (kKmerSizeBytes - 1); i < last; ++i) {
    gear = (gear << 1) + kGearTable[block[i]];
  }
  return gear;
}

// Sampled last bytes of k-mers, ascending.
struct Stream {
  uint32_t gear = 0;
  size_t count = 0;
  std::array<uint32_t, kStreamSize> lasts = {};

  // Branch-free: what is not sampled is overwritten.
  void Take(const uint8_t* block, uint32_t last, uint32_t limit) {
    gear = (gear << 1) + kGearTable[block[last]];
    lasts[count] = last;
    count += gear <= limit ? 1 : 0;
  }
};

}  // namespace

void SampleKmers(ByteView block, uint32_t interval,
                 std::vector<SampledKmer>& kmers) {
  QUIRE_CHECK(block.size() <= UINT32_MAX);
  static_assert(kKmerSizeBytes == 32, "the gear hash has as many bits");
  kmers.clear();
  if (block.size() < kKmerSizeBytes) {
    return;
  }
  const uint32_t limit = UINT32_MAX / interval;
  const uint32_t apart = std::max(interval / 4, uint32_t{1});
  uint32_t next = 0;
  const auto add = [&](const Stream& stream) {
    for (size_t i = 0; i < stream.count; ++i) {
      const uint32_t last = stream.lasts[i];
      if (last >= next) {
        kmers.push_back({.hash = Checksum64(block.subspan(
                             last + 1 - kKmerSizeBytes, kKmerSizeBytes)),
                         .end = last + 1});
        next = last + apart;
      }
    }
  };
  std::array<Stream, kStreamCount> streams;
  size_t at = kKmerSizeBytes - 1;
  for (; at + kStreamCount * kStreamSize <= block.size();
       at += kStreamCount * kStreamSize) {
    for (size_t s = 0; s < kStreamCount; ++s) {
      streams[s].gear = GearBefore(block, at + s * kStreamSize);
      streams[s].count = 0;
    }
    for (size_t i = 0; i < kStreamSize; ++i) {
      for (size_t s = 0; s < kStreamCount; ++s) {
        streams[s].Take(block.data(),
                        static_cast<uint32_t>(at + s * kStreamSize + i), limit);
      }
    }
    std::ranges::for_each(streams, add);
  }
  while (at < block.size()) {
    Stream& stream = streams[0];
    stream.gear = GearBefore(block, at);
    stream.count = 0;
    const size_t end = std::min(block.size(), at + kStreamSize);
    for (; at < end; ++at) {
      stream.Take(block.data(), static_cast<uint32_t>(at), limit);
    }
    add(stream);
  }
}

}  // namespace quire
