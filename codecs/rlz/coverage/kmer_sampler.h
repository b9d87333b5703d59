// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_RLZ_COVERAGE_KMER_SAMPLER_H_
#define QUIRE_CODECS_RLZ_COVERAGE_KMER_SAMPLER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "codecs/base/bytes.h"

namespace quire {

// The size in bytes of what is compared: k of the k-mers.
inline constexpr uint32_t kKmerSizeBytes = 32;

// A stretch of kKmerSizeBytes bytes.
struct SampledKmer {
  // A hash of its bytes; that two differ in bytes but not in hash is as good as
  // impossible.
  uint64_t hash = 0;
  // Where it ends in its block, in bytes: of the byte behind it.
  uint32_t end = 0;
};

// Picks about one of `interval` of the k-mers of `block` by their contents
// alone, so that the same bytes are picked wherever they occur, and puts them
// into `kmers` in place of what was there, by ascending end. The choice is a
// rolling hash's: each byte shifts it by a bit, so that it knows nothing of a
// byte after 32 others ("gear" hash: Xia et al., "Ddelta", 2014, section 3.2).
// Where many are picked close together, as in a long run of one byte, some are
// left out. REQUIRES: block.size() < 2^32; interval > 0.
void SampleKmers(ByteView block, uint32_t interval,
                 std::vector<SampledKmer>& kmers);

// The most that it picks from a block of that size.
constexpr size_t SampledKmerCountMax(size_t block_size, uint32_t interval) {
  return block_size / (interval < 4 ? 1 : interval / 4) + 1;
}

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_COVERAGE_KMER_SAMPLER_H_
