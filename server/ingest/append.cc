// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/append.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "server/archive/files/archive_change.h"
#include "server/ingest/existing_documents.h"

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
                         Archive::Open(change.path()));
  const ArchiveInfo before = archive->info();
  if (before.uuid != change.manifest().Describe(0).uuid) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": was replaced while it was opened; try again"));
  }
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
  options.archive.codec = before.codec;
  options.archive.block_size_bytes = before.block_size_bytes;
  options.symbol_table = before.symbol_table_size_bytes > 0;
  options.append = {
      .archive = archive.get(), .change = &change, .merge = merge};
  const std::string archive_path = change.path();
  QUIRE_ASSIGN_OR_RETURN(summary.build,
                         BuildArchive(archive_path, sources, options));
  summary.document_count =
      summary.build.info.document_count - before.document_count;
  return summary;
}

}  // namespace quire
