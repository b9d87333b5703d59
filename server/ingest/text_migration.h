// SPDX-License-Identifier: GPL-3.0-or-later
//
// Moves similar parts of a stored text together.
#ifndef QUIRE_SERVER_INGEST_TEXT_MIGRATION_H_
#define QUIRE_SERVER_INGEST_TEXT_MIGRATION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "codecs/base/bytes.h"
#include "codecs/reorder/chunk_clusters.h"
#include "codecs/reorder/offset_list.h"
#include "codecs/reorder/reorder_price.h"
#include "codecs/reorder/stored_run.h"
#include "server/ingest/build_memory.h"
#include "server/ingest/sources/spool.h"

namespace quire {

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
  // Where super-features go that memory has no space for.
  std::string spill_directory;
  // What all tables may take, and what those take that are not of this text.
  BuildMemory& memory;
  uint64_t other_held_bytes = 0;
};

// Migrates one segment's text. Memory: 56 bytes a unit, or 21 where that is
// more than may be held and super-features go to files; and 16 for each run,
// before and after. The result is the same. Not to be used again.
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

  // What the tables take at least, with so many units and runs.
  static uint64_t MemoryBytesMin(size_t unit_count, size_t run_count);

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

  std::vector<uint32_t> ChooseOrder(const std::vector<StoredRun>& runs);
  std::vector<bool> JoinedUnits(const std::vector<StoredRun>& runs) const;

  const MigrationInput input_;
  ChunkClusters clusters_;
  // Of each unit, half of its Checksum64().
  std::vector<uint32_t> checksums_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_TEXT_MIGRATION_H_
