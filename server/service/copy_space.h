// SPDX-License-Identifier: GPL-3.0-or-later
//
// Space in the cache of object stores for archives that are opened on use.
#ifndef QUIRE_SERVER_SERVICE_COPY_SPACE_H_
#define QUIRE_SERVER_SERVICE_COPY_SPACE_H_

#include "absl/status/status.h"

#include "server/service/catalog/catalog.h"
#include "server/service/catalog/remote_archives.h"

namespace quire {

// Brings MANIFEST and indexes of an archive in an object store here. If the
// cache's limit leaves no space for them, removes the copies of closed
// archives, and then closes those that no call reads, least recently used
// first, provided that the archive then fits. A full or failing disk harms no
// other archive. Blocks on I/O. Thread-safe.
// Errors: those of RemoteArchives::PrepareOutline() and PrepareIndexes();
//         FailedPrecondition  its indexes do not fit next to those of archives
//                             that are always open.
absl::Status PrepareCopy(const Catalog::Opening& opening, Catalog& catalog,
                         RemoteArchives& remote);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_COPY_SPACE_H_
