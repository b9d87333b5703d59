// SPDX-License-Identifier: GPL-3.0-or-later
//
// Reads a whole archive and reports damage.
#ifndef QUIRE_SERVER_ARCHIVE_ARCHIVE_VERIFIER_H_
#define QUIRE_SERVER_ARCHIVE_ARCHIVE_VERIFIER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/archive/archive.h"

namespace quire {

// A single fault.
struct ArchiveDamage {
  // DataLoss or FailedPrecondition; Unavailable if the device refuses. The
  // message begins with the file's path.
  absl::Status status;
  // Unset if the fault is not in a block but in the manifest, dictionary,
  // symbol table, or a segment's header, indexes or footer.
  std::optional<BlockAddress> block;
  // The first part of the logical space that cannot be read; empty if all of it
  // can (a damaged index whose blocks were found nevertheless).
  LogicalRange lost;
  // Number of further parts: with a layout, text may be stored once for several
  // documents.
  uint64_t further_lost_count = 0;
  uint64_t further_lost_size_bytes = 0;
  // A sentence about what depends on the damaged structure, and what can still
  // be read without it; empty for blocks.
  std::string effect;
  // Documents with bytes in the lost text, and the first of them. If the
  // segment's indexes are damaged too, the list is empty; if some text of the
  // segment can still be read, the count is then an upper bound.
  bool is_document_count_exact = true;
  uint64_t document_count = 0;
  std::vector<Document> documents;
};

struct VerifyProgress {
  uint64_t blocks_done = 0;
  uint64_t blocks_total = 0;
};

struct VerifyOptions {
  // At least 1; fewer threads run if the system refuses more.
  uint32_t thread_count = 1;
  // Verify only part `part_index` of `part_count` parts of about equal numbers
  // of blocks. A segment's checksum over all blocks, and its text with a
  // layout, are checked if the part has all its blocks. REQUIRES: part_index <
  // part_count.
  uint64_t part_index = 0;
  uint64_t part_count = 1;
  // Limit on the size of ArchiveDamage::documents.
  size_t documents_max = 100;
  // Called on the calling thread, periodically and at the end.
  std::function<void(const VerifyProgress&)> on_progress;
};

struct VerifyReport {
  ArchiveInfo info;
  // Text and number of the blocks that were read and decoded.
  uint64_t good_size_bytes = 0;
  uint64_t good_block_count = 0;
  // Blocks that cannot be read.
  uint64_t damaged_block_count = 0;
  // Calls of on_damage.
  uint64_t damage_count = 0;
};

// Checks, beyond what Archive::Open() does: the checksum of each block, and
// that it decodes to text of the right size; the blocks' checksums against the
// footer; the uuid against the contents; and, of segments with a layout whose
// blocks are all good, the text that the layout makes of them. Continues after
// damage as far as possible: a segment whose indexes are unusable is read block
// by block from its start.
//
// Calls `on_damage` on the calling thread for each damage found, in order of
// file and offset, for any number of threads. Blocks until all is read. Opens
// all files before it reads the first: an archive that is replaced meanwhile is
// verified as of this call, or soon after. Holds the dictionary, one segment's
// indexes and one block per thread; with a layout, blocks of about 16 MiB.
// Errors: as WithArchiveDirectory(), if nothing can be verified: the manifest
//   is missing, damaged or unknown, or the archive is replaced repeatedly.
absl::StatusOr<VerifyReport> VerifyArchive(
    const std::string& path, const VerifyOptions& options,
    const std::function<void(const ArchiveDamage&)>& on_damage);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_ARCHIVE_VERIFIER_H_
