// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/archive_loader.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/status_macros.h"
#include "server/service/catalog/drive_report.h"
#include "server/service/catalog/parallel_opening.h"

namespace quire {
namespace {

// Of a reload's report.
constexpr size_t kUnchangedLinesMax = 3;
// A reload reads none.
constexpr char kBlocksNotChecked[] =
    "blocks were not checked: quired verify does that";

}  // namespace

absl::StatusOr<std::vector<PlannedArchive>> ReadOutlines(
    const std::vector<ArchiveArgument>& arguments) {
  std::vector<PlannedArchive> planned;
  std::set<std::string> names;
  for (const ArchiveArgument& argument : arguments) {
    if (!names.insert(argument.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("two archives are named \"", argument.name,
                       "\"; name them apart with NAME=PATH"));
    }
    planned.push_back({.argument = argument, .outline = {}});
  }
  // On a drive at rest each costs a few seeks.
  const std::atomic<bool> never = false;
  const absl::Status status = OpenInParallel(
      std::vector<OpeningNeed>(planned.size()),
      std::numeric_limits<uint64_t>::max(), never, [&](size_t i) {
        QUIRE_ASSIGN_OR_RETURN(planned[i].outline,
                               Archive::ReadOutline(planned[i].argument.path));
        return absl::OkStatus();
      });
  QUIRE_RETURN_IF_ERROR(status);
  return planned;
}

Catalog::OpeningByName DescribeOpening(
    const std::vector<PlannedArchive>& planned) {
  Catalog::OpeningByName opening;
  for (const auto& [argument, outline] : planned) {
    opening.emplace(argument.name, DescribeArchive(argument.name, outline.info,
                                                   v1::ARCHIVE_STATE_OPENING));
  }
  return opening;
}

ArchiveLoader::ArchiveLoader(const ServerOptions& options,
                             const MemoryPlan& plan,
                             std::vector<PlannedArchive> planned,
                             Catalog& catalog, BlockStore& store)
    : options_(options),
      plan_(plan),
      planned_(std::move(planned)),
      catalog_(catalog),
      store_(store) {}

absl::StatusOr<std::shared_ptr<const ServedArchive>> ArchiveLoader::OpenOne(
    const ArchiveArgument& argument) {
  if (options_.before_opening) {
    options_.before_opening(argument.name);
  }
  QUIRE_ASSIGN_OR_RETURN(
      std::shared_ptr<const ServedArchive> served,
      OpenServedArchive(argument, options_.cache_form, options_.report_damage,
                        {.direct_io = options_.direct_io, .cancel = &stop_},
                        options_.range_decode));
  for (const DriveInfo& drive : DrivesOf(*served, options_.drive)) {
    QUIRE_RETURN_IF_ERROR(store_.AddDrive(drive));
  }
  return served;
}

absl::Status ArchiveLoader::OpenAll(
    const std::function<void(const std::string&)>& opened) {
  std::vector<OpeningNeed> needs;
  for (const auto& [argument, outline] : planned_) {
    needs.push_back({.kept_bytes = outline.memory_bytes,
                     .working_bytes = outline.opening_bytes});
  }
  return OpenInParallel(
      needs, plan_.archives_bytes + plan_.reload_bytes, stop_,
      [&](size_t i) -> absl::Status {
        const auto& [argument, outline] = planned_[i];
        QUIRE_ASSIGN_OR_RETURN(std::shared_ptr<const ServedArchive> served,
                               OpenOne(argument));
        // It may have been replaced by a larger one, at the expense of what is
        // kept for reloading.
        const uint64_t memory_bytes = served->archive->memory().total_bytes();
        const uint64_t more_bytes =
            memory_bytes - std::min(memory_bytes, outline.memory_bytes);
        if (unplanned_bytes_.fetch_add(more_bytes) + more_bytes >
            plan_.reload_bytes) {
          return absl::FailedPreconditionError(absl::StrCat(
              argument.path, ": was replaced by a larger archive during the ",
              "start: it takes ", FormatByteSize(memory_bytes), " of memory, ",
              FormatByteSize(outline.memory_bytes),
              " were planned; start again"));
        }
        catalog_.Publish(std::move(served));
        opened(argument.name);
        return absl::OkStatus();
      });
}

std::vector<LogLine> ArchiveLoader::Reload(
    const std::function<void(bool)>& ended) {
  std::vector<LogLine> lines;
  std::vector<std::string> unchanged;
  for (const auto& [argument, outline] : planned_) {
    if (stop_) {
      break;
    }
    const absl::StatusOr<std::string> outcome = ReloadOne(argument);
    ended(outcome.ok());
    const std::string archive = absl::StrCat("archive ", argument.name);
    if (!outcome.ok()) {
      lines.push_back(
          {LogLevel::kWarning, absl::StrCat(archive, " stays as it was: ",
                                            outcome.status().message())});
    } else if (outcome->empty()) {
      unchanged.push_back(
          absl::StrCat(archive, ": unchanged; its ", kBlocksNotChecked));
    } else {
      lines.push_back({LogLevel::kInfo, absl::StrCat(archive, ": ", *outcome)});
    }
  }
  if (unchanged.size() > kUnchangedLinesMax) {
    unchanged = {absl::StrCat(unchanged.size(), " archives: unchanged; their ",
                              kBlocksNotChecked)};
  }
  for (std::string& line : unchanged) {
    lines.push_back({LogLevel::kInfo, std::move(line)});
  }
  return lines;
}

absl::StatusOr<std::string> ArchiveLoader::ReloadOne(
    const ArchiveArgument& argument) {
  const std::shared_ptr<const Catalog::ByName> archives = catalog_.Get();
  const auto found = archives->find(argument.name);
  if (found == archives->end()) {
    return absl::FailedPreconditionError("it has not been opened yet");
  }
  const ServedArchive& served = *found->second;
  QUIRE_ASSIGN_OR_RETURN(const ArchiveOutline outline,
                         Archive::ReadOutline(argument.path));
  if (outline.files == served.archive->files()) {
    return "";
  }
  // The old one goes only when the last call that reads it has ended, so both
  // must fit, and those replaced before that calls still read.
  ReloadNeed need = {.replaced_bytes = ReplacedBytes(),
                     .fresh_bytes = outline.memory_bytes};
  for (const auto& [name, other] : *archives) {
    need.served_bytes += other->archive->memory().total_bytes();
  }
  QUIRE_RETURN_IF_ERROR(CheckReload(plan_, need));
  QUIRE_ASSIGN_OR_RETURN(std::shared_ptr<const ServedArchive> fresh,
                         OpenOne(argument));
  // Once more, with what it takes: the path may name another archive by now.
  need.fresh_bytes = fresh->archive->memory().total_bytes();
  QUIRE_RETURN_IF_ERROR(CheckReload(plan_, need));
  // The same text in other files: a copy put in place of damaged ones.
  const bool is_same_text =
      fresh->archive->info().uuid == served.archive->info().uuid;
  std::string line = absl::StrCat(
      is_same_text ? "same contents in new files, " : "replaced, ",
      FormatCounted(fresh->archive->info().document_count, "document",
                    "documents"),
      is_same_text ? "; its " : "", is_same_text ? kBlocksNotChecked : "");
  replaced_.push_back(served.archive);
  catalog_.Publish(std::move(fresh));
  return line;
}

uint64_t ArchiveLoader::ReplacedBytes() {
  uint64_t size_bytes = 0;
  std::erase_if(replaced_, [&](const std::weak_ptr<const Archive>& replaced) {
    const std::shared_ptr<const Archive> archive = replaced.lock();
    size_bytes += archive == nullptr ? 0 : archive->memory().total_bytes();
    return archive == nullptr;
  });
  return size_bytes;
}

}  // namespace quire
