// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/recompress.h"

#include <vector>

#include "absl/strings/str_cat.h"

#include "server/ingest/resume_parameters.h"
#include "server/ingest/sources/archive_source.h"

namespace quire {

absl::StatusOr<BuildSummary> RecompressArchive(
    const std::string& path, const std::shared_ptr<const Archive>& archive,
    BuildOptions options) {
  const ArchiveInfo& info = archive->info();
  if (!info.unknown_part.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        archive->path(), ": ", info.unknown_part,
        " that this program does not know and would leave out: use a newer "
        "one"));
  }
  options.input_size_bytes_max = info.size_bytes;
  options.deposits = DepositMode::kAuto;
  options.resume.parameters =
      absl::StrCat("archive ", info.uuid, "\n", EncodingParameters(options));
  if (info.block_size_bytes == options.archive.block_size_bytes) {
    options.resume.copied = archive.get();
  }
  std::vector<std::unique_ptr<Source>> sources;
  sources.push_back(std::make_unique<ArchiveSource>(archive, options.threads));
  return BuildArchive(path, sources, options);
}

}  // namespace quire
