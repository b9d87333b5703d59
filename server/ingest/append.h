// SPDX-License-Identifier: GPL-3.0-or-later
//
// Changes an archive in place by new segments, then a new manifest: adds
// documents, or encodes the last ones again. Or adds documents to a copy of its
// encoding, to build parts of an archive in parallel.
#ifndef QUIRE_SERVER_INGEST_APPEND_H_
#define QUIRE_SERVER_INGEST_APPEND_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
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
// `options` say about these; `options.resume` must have its default. Ids,
// ordinals and offsets of earlier documents stay. With `merge` the last
// segments are then joined (GrowArchive()). Without new documents nothing
// changes. The archive at `path` is the old or the new one at any moment
// (archive_change.h); the state before joins its history. Blocks. Errors: those
// of BuildArchive() and ArchiveChange; InvalidArgument also for
//         more segments than an archive can have.
absl::StatusOr<AppendSummary> AppendToArchive(
    const std::string& path, std::vector<std::unique_ptr<Source>> sources,
    ExistingMode existing, BuildOptions options, bool merge = true);

// Builds the archive at `path` as AppendToArchive() would add to an archive
// without documents that has the encoding of the one at `like`. The first
// segment has the given number, or the next one of `like`: archives of such
// parts whose numbers differ can be joined (archive_join.h). Without documents
// the archive is empty. Blocks. Errors: as AppendToArchive() and
// BuildArchive().
absl::StatusOr<BuildSummary> BuildLike(
    const std::string& like, std::optional<uint32_t> first_segment_number,
    const std::string& path, std::span<const std::unique_ptr<Source>> sources,
    const BuildOptions& options);

// Segments that are encoded again.
enum class CompactedSegments {
  // The last ones by the rule of joining (segment_merger.h), up to
  // BuildOptions::segment_size_bytes together, also with a layout; none if
  // that is only the last.
  kSuffix,
  kAll,
};

struct CompactSummary {
  // With the new segments; none if the archive is unchanged.
  BuildSummary build;
  // The segments that were replaced, and the size of their files.
  uint32_t replaced_segment_count = 0;
  uint64_t replaced_file_size_bytes = 0;
  // Text of their blocks.
  uint64_t replaced_stored_text_size_bytes = 0;
};

// Encodes the last segments of the archive at `path` again, in a new order if
// `options.reorder` asks for one, with its codec, level, sizes, dictionary and
// symbol table as AppendToArchive(). Text, ids, ordinals and offsets stay, and
// the state before joins the history. Blocks.
// Errors: as AppendToArchive(); DataLoss  a replaced block is damaged.
absl::StatusOr<CompactSummary> CompactArchive(const std::string& path,
                                              CompactedSegments compacted,
                                              BuildOptions options);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_APPEND_H_
