// SPDX-License-Identifier: Apache-2.0
//
// An order in which similar chunks stand side by side.
#ifndef QUIRE_CODECS_REORDER_CHUNK_CLUSTERS_H_
#define QUIRE_CODECS_REORDER_CHUNK_CLUSTERS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "absl/types/span.h"

#include "codecs/reorder/first_number_table.h"

namespace quire {

// The chunks' numbers, from 0, in the order in which they should be stored:
// clusters by their first chunk, and in a cluster in order of number.
// leaders[i] is the first chunk of the cluster that chunk i is in; it is i for
// that chunk itself. A chunk that `is_joined` stays behind the one before it,
// wherever that goes. Pure.
// REQUIRES: leaders[i] <= i, and is its own leader; is_joined has as many
// elements, or none; the first is not joined.
std::vector<uint32_t> OrderByLeader(std::vector<uint32_t> leaders,
                                    const std::vector<bool>& is_joined = {});

// Puts chunks into clusters, greedily, by Lin et al. ("Migratory Compression",
// FAST 2014, section 3.1): a chunk joins the first cluster that has one of its
// super-features, or begins one. Where the chunk before joined the cluster of
// some chunk, the cluster of the chunk after that one is tried first, so that
// stretches of several chunks stay together. Memory: 5 bytes a chunk, and about
// 10 for each of its super-features that no chunk had before.
// Thread-compatible.
class ChunkClusters {
 public:
  // The next chunk; at most 2^32 - 1. Of its super-features 0 stands for none.
  void Add(absl::Span<const uint64_t> features);

  // No chunk comes any more: forgets what only Add() needs, most of its memory.
  void EndAdding() { first_with_ = {}; }

  // Of each chunk, the first of its cluster.
  std::vector<uint32_t> Leaders() const {
    return {leaders_.begin(), leaders_.end()};
  }

  // Of each chunk, how many of its super-features chunks of its cluster had
  // before; 0 of the first.
  std::vector<uint8_t> SharedCounts() const {
    return {shared_counts_.begin(), shared_counts_.end()};
  }

  // What it keeps.
  size_t MemoryBytes() const {
    return first_with_.MemoryBytes() +
           leaders_.size() * (sizeof(uint32_t) + sizeof(uint8_t));
  }

 private:
  // From a super-feature to the first chunk that had it.
  FirstNumberTable first_with_;
  // For Add(): the first chunk with each super-feature, the chunk's own number
  // where it is that itself.
  std::vector<uint32_t> firsts_;
  // Not in one piece, which would grow by doubling.
  std::deque<uint32_t> leaders_;
  std::deque<uint8_t> shared_counts_;
  // The chunk that the last one resembled; its own number if none.
  uint32_t resembled_ = 0;
};

}  // namespace quire

#endif  // QUIRE_CODECS_REORDER_CHUNK_CLUSTERS_H_
