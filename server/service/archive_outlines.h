// SPDX-License-Identifier: GPL-3.0-or-later
//
// Descriptions of archives that are not open yet, and reasons of those that
// cannot be opened.
#ifndef QUIRE_SERVER_SERVICE_ARCHIVE_OUTLINES_H_
#define QUIRE_SERVER_SERVICE_ARCHIVE_OUTLINES_H_

#include <atomic>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/archive/archive.h"
#include "server/service/catalog/archive_argument.h"
#include "server/service/catalog/remote_archives.h"

namespace quire {

// An archive of the options, before it is opened.
struct PlannedArchive {
  ArchiveArgument argument;
  // Or why its manifest cannot be read.
  absl::StatusOr<ArchiveOutline> outline;

  // False also for an archive of a list in an object store that has no copy
  // here yet.
  bool is_broken() const {
    return !outline.ok() && (!argument.is_listed || argument.url.empty());
  }
};

// An archive that cannot be opened.
struct BrokenArchive {
  std::string name;
  // Includes the archive's path.
  absl::Status reason;
};

// Joins all reasons, and says how to serve the others if there are good ones.
// REQUIRES: `broken` is not empty.
absl::Status JoinReasons(const std::vector<BrokenArchive>& broken,
                         size_t good_count);

// Reads what is known of archives before they are opened, all at once: on an
// idle drive each costs a few seeks. Of an archive in an object store, requests
// its manifest until `cancel`; if it is listed, reads that of its local copy.
// `remote` may be null without such archives. Blocks on I/O.
// Errors: ResourceExhausted  no memory, no threads.
absl::StatusOr<std::vector<PlannedArchive>> ReadOutlines(
    const std::vector<ArchiveArgument>& arguments, RemoteArchives* remote,
    const std::atomic<bool>* cancel);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_ARCHIVE_OUTLINES_H_
