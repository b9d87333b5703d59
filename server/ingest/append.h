// SPDX-License-Identifier: GPL-3.0-or-later
//
// Adds documents to an archive: new segments, then a new manifest.
#ifndef QUIRE_SERVER_INGEST_APPEND_H_
#define QUIRE_SERVER_INGEST_APPEND_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "server/ingest/build_pipeline.h"
#include "server/ingest/sources/source.h"

namespace quire {

// Treatment of documents that the archive has already.
enum class ExistingMode {
  // Adds them as further documents of their ids.
  kAdd,
  // Leaves out those whose id, record type, capture time, size and bytes are
  // those of a document of the archive. Reads the inputs once more.
  kSkip,
};

struct AppendSummary {
  // With the new segments; none if the archive is unchanged.
  BuildSummary build;
  uint64_t document_count = 0;
  // Size of the text of the archive's first segment, and of its file; 0 if it
  // had none.
  uint64_t first_size_bytes = 0;
  uint64_t first_file_size_bytes = 0;
  // Documents that kSkip left out.
  uint64_t existing_count = 0;
};

// Adds the documents of `sources`, in order, as new segments to the archive at
// `path`, with its codec, level, sizes, dictionary and symbol table, whatever
// `options` say about these; `options.resume` must have its default, and
// `options.reorder` must not be kAuto. Ids, ordinals and offsets of earlier
// documents stay. With `merge` the last segments are then joined
// (AppendTarget). Without new documents nothing changes. The archive
// at `path` is the old or the new one at any moment (archive_change.h); the
// state before joins its history. Blocks.
// Errors: those of BuildArchive() and ArchiveChange; InvalidArgument also for
//         more segments than an archive can have.
absl::StatusOr<AppendSummary> AppendToArchive(
    const std::string& path, std::vector<std::unique_ptr<Source>> sources,
    ExistingMode existing, BuildOptions options, bool merge = true);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_APPEND_H_
