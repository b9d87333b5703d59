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
#include "server/ingest/sources/spool.h"
#include "server/ingest/text/build_memory.h"

namespace quire {

// Minimum total size of two consecutive runs, so that a range consists of few
// parts.
inline constexpr uint64_t kRunPairSizeBytesMin = 512;

// Bytes that a hard disk reads in the time of a seek: 100 MB and 100 reads per
// second, as in Lin et al.
inline constexpr uint64_t kHardDiskSeekCostBytes = 1'000'000;

// A stored text to be migrated.
struct MigrationInput {
  // The whole text; the file has nothing else.
  const Spool& text;
  // Checksum64() of the text.
  uint64_t checksum = 0;
  // Offsets of its units, which move as a whole, the first at 0. They should be
  // less than a few hundred KB each.
  const OffsetList& units;
  // Units move only if that is worth it; without a price, whenever similar text
  // precedes them.
  std::optional<ReorderPrice> price = std::nullopt;
  // Memory of all tables, and of those for other text.
  BuildMemory& memory;
  uint64_t other_held_bytes = 0;
  // Bytes that the drive of `text` reads in the time of a seek; 0 if seeks cost
  // nothing.
  uint64_t seek_cost_bytes = 0;
};

// Migrates one segment's text, after Lin et al., section 3.1.2. If seeks cost
// nothing, units are read in the order in which they are written. Otherwise, as
// many units as the memory holds are collected in the order of the drive: in
// one pass over the text if all fit, or in several, each of which skips text
// that takes longer to read than a seek. The share of text read in a pass thus
// decides between chunks and passes locally, where the paper decides once for
// all the text. Memory: 57 bytes per unit, and 16 for each run, before and
// after. Single-use.
// Thread-compatible.
class TextMigration {
 public:
  // `input` must stay valid as long as this.
  explicit TextMigration(const MigrationInput& input) : input_(input) {}

  // Passes the text to `write` in its new order, and converts `runs` from the
  // old order to the new one. Units of which runs have only a few bytes stay
  // with their neighbours, so that runs remain within kRunPairSizeBytesMin if
  // they were.
  // REQUIRES: runs contain each unit's first byte before any later byte of it.
  // Errors: those of `write` and of Spool;
  //         ResourceExhausted  the tables exceed their limit;
  //         DataLoss           the text differs from the written one.
  absl::Status Run(std::vector<StoredRun>& runs,
                   const std::function<absl::Status(ByteView)>& write);

  // Upper bound on the memory of the tables while clusters are found.
  static uint64_t MemoryBytesMax(size_t unit_count, size_t run_count);

 private:
  uint64_t SizeOf(size_t unit) const;

  // Returns the unit that has the byte.
  size_t UnitAt(uint64_t offset) const {
    return input_.units.CountBelow(offset + 1) - 1;
  }

  absl::Status ReadUnit(size_t unit, std::vector<uint8_t>& text) const;
  absl::Status FindClusters(size_t run_count);

  // Records table memory; fails above the limit.
  absl::Status Hold(uint64_t bytes) {
    return input_.memory.Hold(input_.other_held_bytes + bytes);
  }

  // Writes the units, and returns their new offsets.
  absl::StatusOr<std::vector<uint64_t>> WriteUnits(
      const std::vector<uint32_t>& order, uint64_t window_size_bytes,
      const std::function<absl::Status(ByteView)>& write) const;
  // Size of a window for units written together; 0 if they are read in order.
  uint64_t WindowSizeBytes(uint64_t table_bytes) const;
  // Copies the units, which ascend, to their positions in `window`, which
  // begins at `window_offset` of the new text.
  absl::Status ReadAscending(const std::vector<uint32_t>& units,
                             const std::vector<uint64_t>& new_offsets,
                             uint64_t window_offset,
                             std::vector<uint8_t>& window) const;

  std::vector<uint32_t> ChooseOrder(const std::vector<StoredRun>& runs);
  std::vector<bool> JoinedUnits(const std::vector<StoredRun>& runs) const;

  const MigrationInput input_;
  ChunkClusters clusters_;
  // Half of the Checksum64() of each unit.
  std::vector<uint32_t> checksums_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_TEXT_MIGRATION_H_
