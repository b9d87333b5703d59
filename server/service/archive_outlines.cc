// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/archive_outlines.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "codecs/base/status_macros.h"
#include "server/service/catalog/parallel_opening.h"

namespace quire {
namespace {

// Brings the manifest of an archive here if it is in an object store.
absl::Status Prepare(const ArchiveArgument& argument, RemoteArchives* remote,
                     const std::atomic<bool>* cancel) {
  if (argument.url.empty()) {
    return absl::OkStatus();
  }
  if (!argument.is_listed) {
    return remote->PrepareOutline(argument, cancel, MayBeStale::kYes);
  }
  return remote->AdoptCopy(argument)
             ? absl::OkStatus()
             : absl::NotFoundError("there is no local copy");
}

}  // namespace

absl::Status JoinReasons(const std::vector<BrokenArchive>& broken,
                         size_t good_count) {
  return {
      broken.front().reason.code(),
      absl::StrCat(
          broken.size() == 1
              ? ""
              : absl::StrCat(broken.size(), " archives cannot be opened: "),
          absl::StrJoin(broken, "; ",
                        [](std::string* out, const BrokenArchive& archive) {
                          absl::StrAppend(out, archive.reason.message());
                        }),
          good_count == 0 ? "" : "; --skip-broken serves the other archives")};
}

absl::StatusOr<std::vector<PlannedArchive>> ReadOutlines(
    const std::vector<ArchiveArgument>& arguments, RemoteArchives* remote,
    const std::atomic<bool>* cancel) {
  std::vector<PlannedArchive> planned;
  planned.reserve(arguments.size());
  for (const ArchiveArgument& argument : arguments) {
    planned.push_back({.argument = argument, .outline = ArchiveOutline()});
  }
  const std::atomic<bool> never = false;
  QUIRE_RETURN_IF_ERROR(OpenInParallel(
      std::vector<OpeningNeed>(planned.size()),
      std::numeric_limits<uint64_t>::max(), never,
      [&](size_t i, OpeningHelpers* /*helpers*/) {
        PlannedArchive& archive = planned[i];
        const absl::Status prepared = Prepare(archive.argument, remote, cancel);
        if (prepared.ok()) {
          archive.outline = Archive::ReadOutline(archive.argument.path, nullptr,
                                                 !archive.argument.url.empty());
        } else {
          archive.outline = prepared;
        }
        return absl::OkStatus();
      }));
  return planned;
}

}  // namespace quire
