// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/archive_outlines.h"

#include <functional>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "codecs/base/status_macros.h"
#include "server/service/catalog/parallel_opening.h"

namespace quire {
namespace {

// Reads the outline of each archive, all at once: on an idle drive each costs a
// few seeks. `prepare` brings that of an archive in an object store here.
absl::StatusOr<std::vector<absl::StatusOr<ArchiveOutline>>> ReadEachOutline(
    const std::vector<ArchiveArgument>& arguments,
    const std::function<absl::Status(const ArchiveArgument&)>& prepare) {
  std::vector<absl::StatusOr<ArchiveOutline>> outlines(arguments.size());
  const std::atomic<bool> never = false;
  QUIRE_RETURN_IF_ERROR(OpenInParallel(
      std::vector<OpeningNeed>(arguments.size()),
      std::numeric_limits<uint64_t>::max(), never,
      [&](size_t i, OpeningHelpers* /*helpers*/) {
        const bool is_remote = !arguments[i].url.empty();
        const absl::Status prepared =
            is_remote ? prepare(arguments[i]) : absl::OkStatus();
        if (prepared.ok()) {
          outlines[i] =
              Archive::ReadOutline(arguments[i].path, nullptr, is_remote);
        } else {
          outlines[i] = prepared;
        }
        return absl::OkStatus();
      }));
  return outlines;
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
    const std::atomic<bool>* cancel, std::vector<BrokenArchive>& broken) {
  QUIRE_RETURN_IF_ERROR(CheckNamesDiffer(arguments));
  QUIRE_ASSIGN_OR_RETURN(
      std::vector<absl::StatusOr<ArchiveOutline>> outlines,
      ReadEachOutline(arguments, [&](const ArchiveArgument& argument) {
        return remote->PrepareOutline(argument, cancel);
      }));
  std::vector<PlannedArchive> planned;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (outlines[i].ok()) {
      planned.push_back(
          {.argument = arguments[i], .outline = *std::move(outlines[i])});
    } else {
      broken.push_back(
          {.name = arguments[i].name, .reason = outlines[i].status()});
    }
  }
  return planned;
}

absl::StatusOr<std::vector<PlannedListed>> ReadListedOutlines(
    const std::vector<ArchiveArgument>& arguments, RemoteArchives* remote,
    std::vector<BrokenArchive>& broken) {
  QUIRE_ASSIGN_OR_RETURN(
      std::vector<absl::StatusOr<ArchiveOutline>> outlines,
      ReadEachOutline(arguments, [&](const ArchiveArgument& argument) {
        return remote->AdoptCopy(argument)
                   ? absl::OkStatus()
                   : absl::NotFoundError("there is no local copy");
      }));
  std::vector<PlannedListed> planned;
  for (size_t i = 0; i < arguments.size(); ++i) {
    planned.push_back({.argument = arguments[i], .outline = std::nullopt});
    if (outlines[i].ok()) {
      planned.back().outline = *std::move(outlines[i]);
    } else if (arguments[i].url.empty()) {
      broken.push_back(
          {.name = arguments[i].name, .reason = outlines[i].status()});
    }
  }
  return planned;
}

}  // namespace quire
