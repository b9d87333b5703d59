// SPDX-License-Identifier: GPL-3.0-or-later
//
// Moves similar chunks of a stored text together.
#ifndef QUIRE_SERVER_INGEST_TEXT_MIGRATION_H_
#define QUIRE_SERVER_INGEST_TEXT_MIGRATION_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "absl/status/status.h"

#include "codecs/base/bytes.h"
#include "codecs/reorder/chunk_clusters.h"
#include "codecs/reorder/stored_run.h"
#include "server/ingest/sources/spool.h"

namespace quire {

// Of one segment. Memory: some 60 bytes a chunk. Thread-compatible.
class TextMigration {
 public:
  // The next chunk of the stored text.
  void Add(ByteView chunk);

  // Ends adding. Hands the stored text, which is all of `text`, to `write` in
  // its new order, and makes of `runs`, which are of the old one, those of the
  // new one. Chunks of which runs have only a few bytes stay with their
  // neighbours, so that runs remain within kRunPairSizeBytesMin if they were.
  // Errors: those of `write` and of Spool::ReadAt(); DataLoss  a chunk is not
  // what was added.
  absl::Status Move(const Spool& text, std::vector<StoredRun>& runs,
                    const std::function<absl::Status(ByteView)>& write);

 private:
  struct Chunk {
    uint64_t offset = 0;
    uint64_t checksum = 0;
  };

  uint64_t EndOf(size_t chunk) const {
    return chunk + 1 < chunks_.size() ? chunks_[chunk + 1].offset : size_bytes_;
  }

  // The chunk that has the byte, and the first one that begins at it or later.
  size_t ChunkAt(uint64_t offset) const;
  size_t ChunkFrom(uint64_t offset) const;
  std::vector<bool> JoinedChunks(const std::vector<StoredRun>& runs) const;

  // Not in one piece, which would grow by doubling.
  std::deque<Chunk> chunks_;
  uint64_t size_bytes_ = 0;
  ChunkClusters clusters_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_TEXT_MIGRATION_H_
