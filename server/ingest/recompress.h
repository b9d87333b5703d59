// SPDX-License-Identifier: GPL-3.0-or-later
//
// The same documents in another codec: from a tier that is read often to one
// that is kept, and back.
#ifndef QUIRE_SERVER_INGEST_RECOMPRESS_H_
#define QUIRE_SERVER_INGEST_RECOMPRESS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "server/archive/archive.h"
#include "server/ingest/build_pipeline.h"

namespace quire {

// Builds the archive at `path` with the ids, attributes, order and text of
// `archive`, which may be the one at `path` if `options.archive.replace`. It is
// what BuildArchive() makes of the same documents, byte for byte; the symbol
// table is that of `archive`, if it has one and both store the text in its own
// order.
//
// A call that fails or is cancelled after the first blocks, or whose process is
// killed, leaves PATH.partial; one with the same archive and options (threads
// aside) goes on from there. `options.resume.restart` drops it; what else is in
// `options.resume`, and `failures`, must be as it is by default.
// Blocks. Errors: those of BuildArchive(); DataLoss  a block of `archive` is
// damaged; FailedPrecondition  PATH.partial is of other options, or `archive`
// has parts that this program does not know (ArchiveInfo::unknown_part).
absl::StatusOr<BuildSummary> RecompressArchive(
    const std::string& path, const std::shared_ptr<const Archive>& archive,
    BuildOptions options);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_RECOMPRESS_H_
