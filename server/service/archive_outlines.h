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

// An archive to be served, before it is opened.
struct PlannedArchive {
  ArchiveArgument argument;
  ArchiveOutline outline;
};

// An archive to be opened on first use.
struct PlannedListed {
  ArchiveArgument argument;
  // Unset if its manifest cannot be read before.
  std::optional<ArchiveOutline> outline;
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

// Returns the data of archives that is known before they are opened. Adds
// unreadable ones to `broken`. Blocks on a little I/O for each, and on requests
// to object stores until `cancel`. `remote` may be null without such archives.
// Errors: InvalidArgument    two archives of one name.
//         ResourceExhausted  no memory.
absl::StatusOr<std::vector<PlannedArchive>> ReadOutlines(
    const std::vector<ArchiveArgument>& arguments, RemoteArchives* remote,
    const std::atomic<bool>* cancel, std::vector<BrokenArchive>& broken);

// The same for archives of a list, without requests to object stores: of an
// archive there, the outline of its local copy, if there is one.
absl::StatusOr<std::vector<PlannedListed>> ReadListedOutlines(
    const std::vector<ArchiveArgument>& arguments, RemoteArchives* remote,
    std::vector<BrokenArchive>& broken);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_ARCHIVE_OUTLINES_H_
