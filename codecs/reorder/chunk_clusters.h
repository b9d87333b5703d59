// SPDX-License-Identifier: Apache-2.0
//
// An order in which similar chunks stand side by side.
#ifndef QUIRE_CODECS_REORDER_CHUNK_CLUSTERS_H_
#define QUIRE_CODECS_REORDER_CHUNK_CLUSTERS_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"

namespace quire {

// The chunks' numbers, from 0, in the order in which they should be stored:
// clusters by their first chunk, and in a cluster in order of number.
// leaders[i] is the first chunk of the cluster that chunk i is in; it is i for
// that chunk itself. Pure. REQUIRES: leaders[i] <= i, and is its own leader.
std::vector<uint32_t> OrderByLeader(const std::vector<uint32_t>& leaders);

// Puts chunks into clusters, greedily, by Lin et al. ("Migratory Compression",
// FAST 2014, section 3.1): a chunk joins the first cluster that has one of its
// super-features, or begins one. Where the chunk before joined the cluster of
// some chunk, the cluster of the chunk after that one is tried first, so that
// stretches of several chunks stay together. Memory: some 110 bytes a chunk.
// Thread-compatible.
class ChunkClusters {
 public:
  // The next chunk; fewer than 2^32. Of each chunk as many super-features, of
  // which 0 stands for none.
  void Add(absl::Span<const uint64_t> features);

  // OrderByLeader() of the chunks as they were added. A chunk that `is_joined`
  // stays behind the one before it, wherever that goes.
  // REQUIRES: is_joined has as many elements as there are chunks, or none.
  std::vector<uint32_t> Order(const std::vector<bool>& is_joined = {}) const;

  // Of each chunk, the first of its cluster.
  const std::vector<uint32_t>& leaders() const { return leaders_; }

 private:
  // From a super-feature to the first chunk that had it.
  absl::flat_hash_map<uint64_t, uint32_t> first_with_;
  std::vector<uint32_t> leaders_;
  // The chunk that the last one resembled; its own number if none.
  uint32_t resembled_ = 0;
};

}  // namespace quire

#endif  // QUIRE_CODECS_REORDER_CHUNK_CLUSTERS_H_
