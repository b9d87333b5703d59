// SPDX-License-Identifier: GPL-3.0-or-later
//
// Reads an archive from end to end and says what of it is damaged.
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

// One thing that is wrong.
struct ArchiveDamage {
  // DataLoss or FailedPrecondition; Unavailable where the device refuses. The
  // message begins with the file's path.
  absl::Status status;
  // Unset where it is not a block: manifest, dictionary, symbol table, a
  // segment's header, indexes or footer.
  std::optional<BlockAddress> block;
  // The first part of the logical space that cannot be read because of it;
  // empty where all can (a damaged index whose blocks were found nevertheless).
  LogicalRange lost;
  // With a layout text may be stored once for several places: all further
  // parts.
  uint64_t further_lost_count = 0;
  uint64_t further_lost_size_bytes = 0;
  // How much depends on what is damaged, and what can still be read without it,
  // as a sentence; empty for blocks.
  std::string effect;
  // Documents with bytes in what is lost, and the first of them. Where the
  // segment's indexes are damaged too the list is empty; and if some text of
  // the segment is there, it is not known how many they are: the count is then
  // an upper bound.
  bool is_document_count_exact = true;
  uint64_t document_count = 0;
  std::vector<Document> documents;
};

struct VerifyProgress {
  uint64_t blocks_done = 0;
  uint64_t blocks_total = 0;
};

struct VerifyOptions {
  // At least 1; fewer where the system gives no more.
  uint32_t thread_count = 1;
  // ArchiveDamage::documents is cut off here.
  size_t documents_max = 100;
  // Called on the calling thread, now and then and at the end.
  std::function<void(const VerifyProgress&)> on_progress;
};

struct VerifyReport {
  ArchiveInfo info;
  // Text of the blocks that were read and decoded, and their number.
  uint64_t good_size_bytes = 0;
  uint64_t good_block_count = 0;
  // Blocks that cannot be read.
  uint64_t damaged_block_count = 0;
  // Calls of on_damage.
  uint64_t damage_count = 0;
};

// Checks, beyond what Archive::Open() does: every block's checksum and that it
// decodes to text of the right size; the blocks' checksums against the footer;
// the uuid against the contents; and, of segments with a layout whose blocks
// are all good, the text that it makes of them. Goes on after damage as far as
// it can: a segment whose indexes are unusable is read block by block from its
// start.
//
// Calls `on_damage` on the calling thread for each damage found, in order of
// file and place, whatever the number of threads. Blocks until all is read.
// All files are opened before the first is read: an archive that is replaced
// meanwhile is verified as it was when this was called, or soon after. Holds
// the dictionary, one segment's indexes and one block per thread; with a layout
// blocks of some 16 MiB. Errors: where
// there is nothing to verify: as WithArchiveDirectory(), that is the manifest
// is missing, damaged or unknown, or the archive is replaced over and over.
absl::StatusOr<VerifyReport> VerifyArchive(
    const std::string& path, const VerifyOptions& options,
    const std::function<void(const ArchiveDamage&)>& on_damage);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_ARCHIVE_VERIFIER_H_
