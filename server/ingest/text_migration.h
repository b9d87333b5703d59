// SPDX-License-Identifier: GPL-3.0-or-later
//
// Moves similar parts of a stored text together.
#ifndef QUIRE_SERVER_INGEST_TEXT_MIGRATION_H_
#define QUIRE_SERVER_INGEST_TEXT_MIGRATION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/reorder/chunk_clusters.h"
#include "codecs/reorder/offset_list.h"
#include "codecs/reorder/reorder_price.h"
#include "codecs/reorder/stored_run.h"
#include "server/ingest/build_memory.h"
#include "server/ingest/sources/spool.h"

namespace quire {

// Two runs that follow each other have at least this many bytes together, so
// that a range is made of few parts.
inline constexpr uint64_t kRunPairSizeBytesMin = 512;

// Of a hard disk, what it reads in the time of a seek: 100 MB and 100 reads a
// second, as Lin et al. have them.
inline constexpr uint64_t kHardDiskSeekCostBytes = 1'000'000;

// A stored text to be migrated.
struct MigrationInput {
  // All of it; nothing else is in the file.
  const Spool& text;
  // Checksum64() of it.
  uint64_t checksum = 0;
  // Where its units begin, the first at 0: what is moved as a whole. They
  // should be less than a few hundred KB each.
  const OffsetList& units;
  // Units move only where that is worth it; without, wherever there is similar
  // text before them.
  std::optional<ReorderPrice> price = std::nullopt;
  // What all tables may take, and what those take that are not of this text.
  BuildMemory& memory;
  uint64_t other_held_bytes = 0;
  // Of the drive that has `text`, how much it reads in the time of a seek; 0 if
  // seeks cost nothing.
  uint64_t seek_cost_bytes = 0;
};

// Migrates one segment's text, after Lin et al., section 3.1.2. Where seeks
// cost nothing, units are read in the order in which they are written. Where
// they do, as many are collected in the memory that may still be taken as it
// holds, in the order in which they lie on the drive: in one pass over the text
// if all fit, or in several, each of which skips what takes longer to read over
// than a seek does. That share of a pass decides between chunks and passes
// everywhere, where the paper decides once, for all the text. Memory: 57 bytes
// a unit, and 16 for each run, before and after. Not to be used again.
// Thread-compatible.
class TextMigration {
 public:
  // `input` is used as long as this is.
  explicit TextMigration(const MigrationInput& input) : input_(input) {}

  // Hands the text to `write` in its new order, and makes of `runs`, which are
  // of the old one, those of the new one. Units of which runs have only a few
  // bytes stay with their neighbours, so that runs remain within
  // kRunPairSizeBytesMin if they were.
  // REQUIRES: each unit's first byte comes in runs before all bytes after it.
  // Errors: those of `write` and of Spool; ResourceExhausted  the tables take
  // more than they may; DataLoss  the text is not what was written.
  absl::Status Run(std::vector<StoredRun>& runs,
                   const std::function<absl::Status(ByteView)>& write);

  // Upper bound on the memory of the tables while clusters are found.
  static uint64_t MemoryBytesMax(size_t unit_count, size_t run_count);

 private:
  uint64_t SizeOf(size_t unit) const;

  // The unit that has the byte.
  size_t UnitAt(uint64_t offset) const {
    return input_.units.CountBelow(offset + 1) - 1;
  }

  absl::Status ReadUnit(size_t unit, std::vector<uint8_t>& text) const;
  absl::Status FindClusters(size_t run_count);

  // Notes that the tables take so much.
  absl::Status Hold(uint64_t bytes) {
    return input_.memory.Hold(input_.other_held_bytes + bytes);
  }

  // Writes the units, and says where each then begins.
  absl::StatusOr<std::vector<uint64_t>> WriteUnits(
      const std::vector<uint32_t>& order, uint64_t window_size_bytes,
      const std::function<absl::Status(ByteView)>& write) const;
  // For units that are written together; 0 if they are read in their order.
  uint64_t WindowSizeBytes(uint64_t table_bytes) const;
  // Puts the units, which ascend, to their places in `window`, which begins at
  // `window_offset` of the new text.
  absl::Status ReadAscending(const std::vector<uint32_t>& units,
                             const std::vector<uint64_t>& new_offsets,
                             uint64_t window_offset,
                             std::vector<uint8_t>& window) const;

  std::vector<uint32_t> ChooseOrder(const std::vector<StoredRun>& runs);
  std::vector<bool> JoinedUnits(const std::vector<StoredRun>& runs) const;

  const MigrationInput input_;
  ChunkClusters clusters_;
  // Of each unit, half of its Checksum64().
  std::vector<uint32_t> checksums_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_TEXT_MIGRATION_H_
