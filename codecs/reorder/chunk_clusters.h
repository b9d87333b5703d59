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

// Returns the chunks' numbers, from 0, in storage order: clusters by their
// first chunk, and by number within a cluster. leaders[i] is the first chunk of
// the cluster of chunk i, and i itself for that chunk. A chunk that `is_joined`
// stays directly after its predecessor. Pure.
// REQUIRES: leaders[i] <= i, and each leader leads itself; is_joined has as
// many elements, or none; the first chunk is not joined.
std::vector<uint32_t> OrderByLeader(std::vector<uint32_t> leaders,
                                    const std::vector<bool>& is_joined = {});

// Clusters chunks greedily, by Lin et al. ("Migratory Compression", FAST 2014,
// section 3.1): a chunk joins the first cluster with one of its super-features,
// or begins one. If the chunk before it joined the cluster of some chunk, the
// cluster of that chunk's successor is tried first, so that runs of chunks stay
// together. Memory: 5 bytes per chunk, and about 10 for each new super-feature.
// Thread-compatible.
class ChunkClusters {
 public:
  // Adds the next chunk; at most 2^32 - 1 in total. A super-feature of 0 means
  // none.
  void Add(absl::Span<const uint64_t> features);

  // Frees what only Add() needs, most of its memory. No Add() may follow.
  void EndAdding() { first_with_ = {}; }

  // Returns the first chunk of each chunk's cluster.
  std::vector<uint32_t> Leaders() const {
    return {leaders_.begin(), leaders_.end()};
  }

  // Returns for each chunk how many of its super-features its cluster had
  // before; 0 for the first.
  std::vector<uint8_t> SharedCounts() const {
    return {shared_counts_.begin(), shared_counts_.end()};
  }

  // Memory in use, in bytes.
  size_t MemoryBytes() const {
    return first_with_.MemoryBytes() +
           leaders_.size() * (sizeof(uint32_t) + sizeof(uint8_t));
  }

 private:
  FirstNumberTable first_with_;
  // For Add(): the first chunk with each super-feature, the chunk's own number
  // where it is that itself.
  std::vector<uint32_t> firsts_;
  // A deque: a vector would double to grow.
  std::deque<uint32_t> leaders_;
  std::deque<uint8_t> shared_counts_;
  // The chunk that the last one resembled; the last one itself if none.
  uint32_t resembled_ = 0;
};

}  // namespace quire

#endif  // QUIRE_CODECS_REORDER_CHUNK_CLUSTERS_H_
