// SPDX-License-Identifier: GPL-3.0-or-later
//
// Joins archives with one encoding, such as parts of a collection that were
// built in parallel, without encoding anything again.
#ifndef QUIRE_SERVER_ARCHIVE_ARCHIVE_JOIN_H_
#define QUIRE_SERVER_ARCHIVE_ARCHIVE_JOIN_H_

#include <atomic>
#include <span>
#include <string>

#include "absl/status/statusor.h"

#include "server/archive/format/archive_description.h"

namespace quire {

struct JoinSummary {
  ArchiveInfo info;
  // The first part whose segments are numbered below those of a part before it,
  // which may be a wrong order; empty if there is none.
  std::string out_of_order;
};

// Writes an archive at `path` with the documents of `parts`, in the order
// given: hard links to their files, or copies where the file system refuses
// links, and one manifest. It equals the archive that appending each part to
// those before would have made, except that its history is that of the first
// part and its state. The parts stay. Reads all of them except the blocks, one
// after another, before anything is published. `replace` is as in
// ArchiveWriterOptions; `cancel` may be null. Blocks.
// REQUIRES: at least one part.
// Errors: FailedPrecondition  a part has another codec, level, block size,
//                             partition size, dictionary or symbol table than
//                             the first, or one of its segment numbers, or
//                             parts that this program does not know; or a
//                             field has several types.
//         InvalidArgument     more segments or fields than an archive can have.
//         Those of Archive::Open() for a part, and of ArchiveChange.
absl::StatusOr<JoinSummary> JoinArchives(const std::string& path,
                                         std::span<const std::string> parts,
                                         bool replace,
                                         const std::atomic<bool>* cancel);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_ARCHIVE_JOIN_H_
