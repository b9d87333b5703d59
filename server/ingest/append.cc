// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/append.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include "absl/status/status.h"

#include "codecs/base/status_macros.h"
#include "server/archive/files/archive_change.h"
#include "server/archive/files/archive_directory.h"
#include "server/archive/segment_merger.h"
#include "server/ingest/existing_documents.h"
#include "server/ingest/sources/archive_source.h"

namespace quire {
namespace {

// Replaces each source by one without the documents that `archive` has. Returns
// their number, and takes the memory of their list from the options.
absl::StatusOr<uint64_t> LeaveOutExisting(
    const Archive& archive, BuildOptions& options,
    std::vector<std::unique_ptr<Source>>& sources) {
  BuildProgress progress;
  progress.phase = BuildPhase::kCompare;
  ExistingDocumentFinder finder(
      archive, options.build_memory_bytes, [&](uint64_t size_bytes) {
        progress.done_bytes += size_bytes;
        if (options.on_progress) {
          options.on_progress(progress);
        }
        return options.cancel != nullptr && *options.cancel
                   ? absl::CancelledError("the append was interrupted")
                   : absl::OkStatus();
      });
  uint64_t existing_count = 0;
  for (std::unique_ptr<Source>& source : sources) {
    QUIRE_ASSIGN_OR_RETURN(ExistingDocuments existing, finder.Find(*source));
    existing_count += existing.size();
    source = std::make_unique<NewDocumentSource>(std::move(source),
                                                 std::move(existing));
  }
  options.build_memory_bytes -=
      std::min(options.build_memory_bytes, finder.result_bytes());
  return existing_count;
}

}  // namespace

absl::StatusOr<AppendSummary> AppendToArchive(
    const std::string& path, std::vector<std::unique_ptr<Source>> sources,
    ExistingMode existing, BuildOptions options, bool merge) {
  QUIRE_ASSIGN_OR_RETURN(ArchiveChange change, ArchiveChange::Begin(path));
  QUIRE_ASSIGN_OR_RETURN(const std::shared_ptr<const Archive> archive,
                         Archive::OpenAs(change.path(), change.manifest()));
  const ArchiveInfo before = archive->info();
  AppendSummary summary;
  if (!change.manifest().segments.empty()) {
    const ManifestSegment& first = change.manifest().segments.front();
    summary.first_size_bytes = first.size_bytes;
    summary.first_file_size_bytes = first.file_size_bytes;
  }
  if (existing == ExistingMode::kSkip) {
    QUIRE_ASSIGN_OR_RETURN(summary.existing_count,
                           LeaveOutExisting(*archive, options, sources));
  }
  QUIRE_ASSIGN_OR_RETURN(
      summary.build, GrowArchive(archive->path(),
                                 ArchiveWriter::Append(std::move(change),
                                                       options.archive.writer),
                                 *archive, sources, options, merge));
  summary.document_count =
      summary.build.info.document_count - before.document_count;
  return summary;
}

absl::StatusOr<BuildSummary> BuildLike(
    const std::string& like, std::optional<uint32_t> first_segment_number,
    const std::string& path, std::span<const std::unique_ptr<Source>> sources,
    const BuildOptions& options) {
  QUIRE_ASSIGN_OR_RETURN(ArchiveDirectory directory, OpenKnownArchive(like));
  QUIRE_ASSIGN_OR_RETURN(const std::shared_ptr<const Archive> archive,
                         Archive::OpenAs(like, directory.manifest));
  directory.manifest = directory.manifest.WithoutDocuments();
  directory.manifest.next_segment_number =
      first_segment_number.value_or(directory.manifest.next_segment_number);
  QUIRE_ASSIGN_OR_RETURN(
      ArchiveChange change,
      ArchiveChange::BeginCopy(directory, path, options.archive.replace,
                               options.cancel));
  return GrowArchive(
      path,
      ArchiveWriter::Append(std::move(change), options.archive.writer,
                            options.archive.on_segment),
      *archive, sources, options, /*merge=*/false);
}

absl::StatusOr<CompactSummary> CompactArchive(const std::string& path,
                                              CompactedSegments compacted,
                                              BuildOptions options) {
  QUIRE_ASSIGN_OR_RETURN(ArchiveChange change, ArchiveChange::Begin(path));
  QUIRE_ASSIGN_OR_RETURN(const std::shared_ptr<const Archive> archive,
                         Archive::OpenAs(change.path(), change.manifest()));
  const std::span<const ManifestSegment> segments = change.manifest().segments;
  const bool takes_all = compacted == CompactedSegments::kAll;
  const size_t first = takes_all
                           ? 0
                           : FirstToJoin(segments, options.segment_size_bytes,
                                         LayoutSegments::kJoin);
  CompactSummary summary;
  if (segments.size() - first < (takes_all ? 1 : 2)) {
    summary.build.info = archive->info();
    return summary;
  }
  uint64_t first_ordinal = 0;
  for (const ManifestSegment& segment : segments.first(first)) {
    first_ordinal += segment.document_count;
  }
  for (const ManifestSegment& segment : segments.subspan(first)) {
    ++summary.replaced_segment_count;
    summary.replaced_file_size_bytes += segment.file_size_bytes;
    summary.replaced_stored_text_size_bytes += segment.stored_text_size_bytes;
  }
  options.input_size_bytes_max = archive->info().size_bytes;
  options.deposits = DepositMode::kAuto;
  QUIRE_ASSIGN_OR_RETURN(
      std::unique_ptr<ArchiveWriter> writer,
      ArchiveWriter::Replace(std::move(change), options.archive.writer, first,
                             options.cancel));
  std::vector<std::unique_ptr<Source>> sources;
  sources.push_back(
      std::make_unique<ArchiveSource>(archive, options.threads, first_ordinal));
  QUIRE_ASSIGN_OR_RETURN(
      summary.build, GrowArchive(archive->path(), std::move(writer), *archive,
                                 sources, options, /*merge=*/false));
  return summary;
}

}  // namespace quire
