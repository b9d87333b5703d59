// SPDX-License-Identifier: GPL-3.0-or-later
//
// Builds an archive from inputs.
#ifndef QUIRE_SERVER_INGEST_BUILD_PIPELINE_H_
#define QUIRE_SERVER_INGEST_BUILD_PIPELINE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "server/archive/archive.h"
#include "server/archive/archive_writer.h"
#include "server/ingest/build_choice.h"
#include "server/ingest/build_options.h"
#include "server/ingest/deposit_tracker.h"
#include "server/ingest/sources/input_limits.h"
#include "server/ingest/sources/source.h"

namespace quire {

struct BuildSummary {
  ArchiveInfo info;
  // Size of the text of the inputs, as counted in the first pass.
  uint64_t text_size_bytes = 0;
  BuildChoice choice;
  // Requested steps that were omitted for lack of space or memory; for people.
  std::vector<std::string> omissions;
  SkippedEntries skipped;
  DroppedAttributes dropped_attributes;
  // Fields of the documents, and notes on their types for people.
  std::vector<FieldColumn> fields;
  std::vector<std::string> field_notes;
  // Blocks stored unencoded because encoding did not make them smaller.
  uint64_t raw_block_count = 0;
  // Of GrowArchive(): the new segments, and the number of segments, earlier
  // ones included, that were joined into one.
  ArchiveWriter::Appended appended;
  uint32_t joined_segment_count = 0;
  // Blocks of an earlier build, and of ResumeOptions::copied.
  uint64_t kept_block_count = 0;
  uint64_t copied_block_count = 0;
  // Blocks stored unencoded because their encoding did not decode to their
  // text: a bug of the codec.
  uint64_t mismatched_block_count = 0;
  DepositSummary deposits;
  // Compressed members that stay compressed because they are too large
  // (BuildOptions::inflate_member_size_bytes_max). Counted if the codec
  // inflates.
  FoundMembers::Refused oversized_members;
};

// Runs the first passes of BuildArchive() and returns their choices, without
// writing an archive; also for a sample of a text, to plan by.
// Blocks. Errors: as BuildArchive().
absl::StatusOr<BuildChoice> ChooseBuild(
    const std::string& path, std::span<const std::unique_ptr<Source>> sources,
    const BuildOptions& options);

// Builds the archive at `path` from the documents of `sources`, in order. Takes
// a pass over all sources to count, the passes of the dictionary's builder, one
// for the symbol table if the codec uses it, and one to encode. The archive
// contains the text of the last pass, so a source that changes meanwhile costs
// only compression; but losing bytes before its dictionary was sampled is an
// error.
//
// The archive depends only on documents, options and their order, not on
// threads or timing, nor on where an earlier build was stopped. After any error
// or kill, `path` is unchanged. Blocks.
// Errors: those of Source, DictionaryBuilder, MakeBlockCodec() and
//         ArchiveWriter; Cancelled; with ResumeOptions those of
//         UnfinishedArchive::Open(); and those of InputLimits,
//         InvalidArgument and ResourceExhausted, already in the first pass
//         unless the inputs change meanwhile.
absl::StatusOr<BuildSummary> BuildArchive(
    const std::string& path, std::span<const std::unique_ptr<Source>> sources,
    const BuildOptions& options);

// Writes an archive without documents that has the encoding that BuildArchive()
// would choose: codec, level, sizes, dictionary and symbol table. Archives like
// it can be joined (BuildLike() of append.h). Takes the passes of
// BuildArchive() except the last, and one for the symbol table.
// REQUIRES: options.resume has its default.
// Blocks. Errors: as BuildArchive().
absl::StatusOr<BuildSummary> BuildEmptyArchive(
    const std::string& path, std::span<const std::unique_ptr<Source>> sources,
    const BuildOptions& options);

// Encodes the documents of `sources`, in order, into a change of an archive:
// `writer` adds or replaces segments (ArchiveWriter::Append(), Replace()). They
// have the codec, level, sizes, dictionary and symbol table of `like`, whatever
// `options` say about these. With `merge` the last segments are then joined, up
// to options.segment_size_bytes together (segment_merger.h). `path` is that of
// the archive, for temporary files next to it. REQUIRES: options.resume has its
// default; the sources of a writer that replaces are exactly the replaced
// documents. Blocks. Errors: as BuildArchive().
absl::StatusOr<BuildSummary> GrowArchive(
    const std::string& path, std::unique_ptr<ArchiveWriter> writer,
    const Archive& like, std::span<const std::unique_ptr<Source>> sources,
    BuildOptions options, bool merge);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_BUILD_PIPELINE_H_
