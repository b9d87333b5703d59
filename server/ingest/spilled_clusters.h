// SPDX-License-Identifier: GPL-3.0-or-later
//
// Clusters of more chunks than memory has space for their super-features.
#ifndef QUIRE_SERVER_INGEST_SPILLED_CLUSTERS_H_
#define QUIRE_SERVER_INGEST_SPILLED_CLUSTERS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include "codecs/reorder/chunk_clusters.h"
#include "server/ingest/record_sorter.h"

namespace quire {

// Makes the same clusters as ChunkClusters::Add(). That depends only on which
// chunk was the first with each super-feature: the super-features are sorted in
// files to find these, and the chunks they belong to once more, to bring them
// back into order. Files take 64 bytes a chunk, and as much again where all
// come again. Thread-compatible.
class SpilledClusters {
 public:
  // `directory` gets files without names. `memory_bytes` is what super-features
  // take in memory, beside the clusters.
  SpilledClusters(const std::string& directory, size_t memory_bytes);

  // As ChunkClusters::Add(), of at most four super-features.
  // Errors: Unavailable  no space is left in the directory.
  absl::Status Add(absl::Span<const uint64_t> features);

  // The clusters of all chunks, of which no more come. The builder is of no
  // more use. Errors: as Add(), or a file cannot be read.
  absl::StatusOr<ChunkClusters> Take();

 private:
  // Hands on those that a chunk before had.
  absl::Status FindFirsts();

  RecordSorter features_;
  RecordSorter firsts_;
  uint32_t chunk_count_ = 0;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SPILLED_CLUSTERS_H_
