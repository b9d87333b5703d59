// SPDX-License-Identifier: Apache-2.0
//
// A text in the order that migration gives it, whole in memory: what the
// experiments of Lin et al. ("Migratory Compression", FAST 2014) compress and
// read, with each of its parts as an option. Archives are built by
// server/ingest, of the same parts.
#ifndef QUIRE_LOADTEST_MIGRATION_BENCH_MIGRATED_TEXT_H_
#define QUIRE_LOADTEST_MIGRATION_BENCH_MIGRATED_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "codecs/base/bytes.h"
#include "codecs/reorder/stored_run.h"
#include "codecs/reorder/super_features.h"

namespace quire {

struct MigrationOptions {
  // Content-defined chunks of that average size, a power of two from
  // kChunkSizeBytesMin to kChunkSizeBytesMax; otherwise all of that size.
  bool has_variable_chunks = true;
  uint32_t chunk_size_bytes = 2048;
  // Whether a chunk that comes again is stored once.
  bool drops_duplicates = true;
  // Whether similar chunks are moved together.
  bool moves_similar = true;
  SketchOptions sketch;
  // Only the largest clusters move, which have at least that share of all
  // chunks that are similar to others (section 3.3 of the paper: its thirds).
  // 0 to 1.
  double moved_share = 1;
};

// A chunk that is stored.
struct MigratedChunk {
  // In the original text.
  uint64_t offset = 0;
  uint32_t size_bytes = 0;
  // The number of the first chunk of its cluster: of itself, if it is alone.
  uint32_t leader = 0;
};

struct MigratedText {
  std::string stored;
  // Makes the original of `stored`.
  std::vector<StoredRun> runs;
  // Those stored, in order of the original text.
  std::vector<MigratedChunk> chunks;
  // With duplicates.
  size_t chunk_count = 0;
  // CPU time of this thread.
  double divide_seconds = 0;
  double sketch_seconds = 0;
  double cluster_seconds = 0;
};

// Pure but for the clock. Memory: the text once more, and some 100 bytes a
// chunk.
// REQUIRES: options within their bounds, fewer than 2^32 chunks.
MigratedText MigrateText(ByteView text, const MigrationOptions& options);

// The original text. REQUIRES: made by MigrateText().
std::string RestoreText(const MigratedText& migrated);

// Bytes of the recipe as variable-length integers: of each run its size, and
// how far its start is from the end of the run before.
size_t RecipeSizeBytes(const std::vector<StoredRun>& runs);

// What reading text takes of storage.
struct ReadCost {
  uint64_t text_bytes = 0;
  // Blocks read: those that hold a part of a window, once for each window.
  uint64_t blocks = 0;
  // Of them, those that do not follow the one read before.
  uint64_t seeks = 0;
};

// Of reading the original text from `offset` to its end in pieces of
// `window_size_bytes`, each of which takes its blocks in order of storage.
// `block_size_bytes` counts bytes of the stored text. Pure.
// REQUIRES: both sizes > 0.
ReadCost CostOfReading(const std::vector<StoredRun>& runs, uint64_t offset,
                       uint64_t window_size_bytes, uint64_t block_size_bytes);

}  // namespace quire

#endif  // QUIRE_LOADTEST_MIGRATION_BENCH_MIGRATED_TEXT_H_
