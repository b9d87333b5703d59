// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_RLZ_COVERAGE_KMER_SAMPLER_H_
#define QUIRE_CODECS_RLZ_COVERAGE_KMER_SAMPLER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "codecs/base/bytes.h"

namespace quire {

// Size of a k-mer, in bytes.
inline constexpr uint32_t kKmerSizeBytes = 32;

// A run of kKmerSizeBytes bytes.
struct SampledKmer {
  // Hash of its bytes; collisions are practically impossible.
  uint64_t hash = 0;
  // Offset of its end in the block, in bytes.
  uint32_t end = 0;
};

// Samples about one of `interval` of the k-mers of `block` by their contents
// alone, so that the same bytes are sampled wherever they occur. Replaces the
// contents of `kmers` by them, by ascending end. A rolling hash chooses: each
// byte shifts it by a bit, so that it depends on the last 32 bytes only ("gear"
// hash: Xia et al., "Ddelta", 2014, section 3.2). Where many would be sampled
// close together, as in a long run of one byte, some are left out. REQUIRES:
// block.size() < 2^32; interval > 0.
void SampleKmers(ByteView block, uint32_t interval,
                 std::vector<SampledKmer>& kmers);

// Upper bound on the number of k-mers of a block of that size.
constexpr size_t SampledKmerCountMax(size_t block_size, uint32_t interval) {
  return block_size / (interval < 4 ? 1 : interval / 4) + 1;
}

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_COVERAGE_KMER_SAMPLER_H_
