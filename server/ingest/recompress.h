// SPDX-License-Identifier: GPL-3.0-or-later
//
// The same documents in another codec: from a tier for frequent reads to one
// for keeping, and back.
#ifndef QUIRE_SERVER_INGEST_RECOMPRESS_H_
#define QUIRE_SERVER_INGEST_RECOMPRESS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "server/archive/archive.h"
#include "server/ingest/build_pipeline.h"

namespace quire {

// Builds the archive at `path` with the ids, attributes, order and text of
// `archive`, which may be the one at `path` if `options.archive.replace`. The
// result equals that of BuildArchive() for the same documents, byte for byte.
//
// A call that fails or is cancelled after the first blocks, or whose process is
// killed, leaves PATH.partial; a later call with the same archive and options
// (except threads) resumes it. `options.resume.restart` drops it; the rest of
// `options.resume`, and `failures`, must have their defaults.
// Blocks.
// Errors: those of BuildArchive();
//         DataLoss            a block of `archive` is damaged;
//         FailedPrecondition  PATH.partial is of other options, or `archive`
//                             has unknown parts (ArchiveInfo::unknown_part).
absl::StatusOr<BuildSummary> RecompressArchive(
    const std::string& path, const std::shared_ptr<const Archive>& archive,
    BuildOptions options);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_RECOMPRESS_H_
