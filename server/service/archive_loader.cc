// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/archive_loader.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/status_macros.h"
#include "server/service/catalog/drive_report.h"
#include "server/service/catalog/parallel_opening.h"

namespace quire {
namespace {

// Limit on lines about unchanged archives in a reload's report.
constexpr size_t kUnchangedLinesMax = 3;
// A remote archive may be replaced while it is opened.
constexpr int kRemoteOpeningsMax = 3;
// A reload reads no blocks.
constexpr char kBlocksNotChecked[] =
    "blocks were not checked: quired verify does that";

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
  std::vector<absl::StatusOr<ArchiveOutline>> outlines(arguments.size());
  // On an idle drive each costs a few seeks.
  const std::atomic<bool> never = false;
  QUIRE_RETURN_IF_ERROR(OpenInParallel(
      std::vector<OpeningNeed>(arguments.size()),
      std::numeric_limits<uint64_t>::max(), never,
      [&](size_t i, OpeningHelpers* /*helpers*/) {
        const bool is_remote = !arguments[i].url.empty();
        if (is_remote) {
          const absl::Status status =
              remote->PrepareOutline(arguments[i], cancel);
          if (!status.ok()) {
            outlines[i] = status;
            return absl::OkStatus();
          }
        }
        outlines[i] =
            Archive::ReadOutline(arguments[i].path, nullptr, is_remote);
        return absl::OkStatus();
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
                             Catalog& catalog, BlockStore& store,
                             WithdrawalFile* withdrawals,
                             RemoteArchives* remote)
    : options_(options),
      plan_(plan),
      planned_(std::move(planned)),
      workspaces_(std::make_shared<DecodeWorkspaces>(plan.workspaces_bytes)),
      catalog_(catalog),
      store_(store),
      withdrawals_(withdrawals),
      remote_(remote) {}

absl::StatusOr<std::shared_ptr<ServedArchive>> ArchiveLoader::OpenRemote(
    const ArchiveArgument& argument, ArchiveOpenOptions options,
    const ServedArchive* previous) {
  options.direct_io = DirectIo::kOff;
  options.has_sparse_segments = true;
  const FilePlacer place_file = [this](int fd) {
    return remote_->store().Place(fd).value_or(FilePlacement());
  };
  for (int attempt = 1;; ++attempt) {
    const bool is_last = attempt == kRemoteOpeningsMax;
    absl::Status status = remote_->PrepareIndexes(argument, options.cancel);
    if (status.ok()) {
      absl::StatusOr<std::shared_ptr<ServedArchive>> served = OpenServedArchive(
          argument, workspaces_, options_.report_damage, options,
          options_.range_decode, previous, place_file);
      if (served.ok() || !absl::IsDataLoss(served.status()) || is_last) {
        return served;
      }
      remote_->DropIndexes(argument);
    } else if (is_last ||
               !(absl::IsAborted(status) || absl::IsNotFound(status))) {
      return status;
    }
    QUIRE_RETURN_IF_ERROR(remote_->PrepareOutline(argument, options.cancel));
  }
}

absl::Status ArchiveLoader::AddDrives(const ServedArchive& served) {
  for (const DriveInfo& drive : DrivesOf(served, options_.drive)) {
    QUIRE_RETURN_IF_ERROR(drive.kind == DriveKind::kObjectStore
                              ? store_.AddDrive(drive,
                                                remote_->store().DeviceOpener(),
                                                remote_->store().requests_max())
                              : store_.AddDrive(drive));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<ServedArchive>> ArchiveLoader::OpenOne(
    const ArchiveArgument& argument, const ServedArchive* previous,
    OpeningHelpers* helpers) {
  if (options_.before_opening) {
    options_.before_opening(argument.name);
  }
  const ArchiveOpenOptions open_options = {
      .without_damaged_indexes = options_.skip_broken,
      .direct_io = options_.direct_io,
      .cancel = &stop_,
      .helpers = helpers};
  QUIRE_ASSIGN_OR_RETURN(
      std::shared_ptr<ServedArchive> served,
      argument.url.empty()
          ? OpenServedArchive(argument, workspaces_, options_.report_damage,
                              open_options, options_.range_decode, previous)
          : OpenRemote(argument, open_options, previous));
  for (const absl::Status& damage : served->archive->index_damages()) {
    if (options_.say) {
      options_.say(LogLevel::kError,
                   absl::StrCat("archive ", argument.name,
                                " is served without a damaged index: ",
                                damage.message()));
    }
  }
  QUIRE_RETURN_IF_ERROR(AddDrives(*served));
  return served;
}

absl::Status ArchiveLoader::OpenAll(const ServingChanged& changed,
                                    std::vector<BrokenArchive>& broken) {
  std::vector<OpeningNeed> needs;
  for (const auto& [argument, outline] : planned_) {
    needs.push_back({.kept_bytes = outline.memory_bytes,
                     .working_bytes = outline.opening_bytes});
  }
  std::vector<absl::Status> outcomes(planned_.size());
  const absl::Status status = OpenInParallel(
      needs, plan_.archives_bytes + plan_.reload_bytes, stop_,
      [&](size_t i, OpeningHelpers* helpers) -> absl::Status {
        outcomes[i] = OpenPlanned(planned_[i], helpers);
        if (outcomes[i].ok()) {
          changed(planned_[i].argument.name, true);
        }
        // A broken archive does not keep the others from being opened.
        return absl::IsCancelled(outcomes[i]) ? outcomes[i] : absl::OkStatus();
      });
  for (size_t i = 0; i < planned_.size(); ++i) {
    if (!outcomes[i].ok() && !absl::IsCancelled(outcomes[i])) {
      const std::string& name = planned_[i].argument.name;
      catalog_.Remove(name);
      broken.push_back({.name = name, .reason = std::move(outcomes[i])});
    }
  }
  return status;
}

absl::Status ArchiveLoader::OpenPlanned(const PlannedArchive& planned,
                                        OpeningHelpers* helpers) {
  const auto& [argument, outline] = planned;
  QUIRE_ASSIGN_OR_RETURN(std::shared_ptr<ServedArchive> served,
                         OpenOne(argument, /*previous=*/nullptr, helpers));
  // It may have been replaced by a larger one, which uses memory reserved for
  // reloading.
  const uint64_t memory_bytes = served->archive->memory_bytes_max();
  const uint64_t more_bytes =
      memory_bytes - std::min(memory_bytes, outline.memory_bytes);
  if (unplanned_bytes_.fetch_add(more_bytes) + more_bytes >
      plan_.reload_bytes) {
    return absl::FailedPreconditionError(absl::StrCat(
        argument.path, ": was replaced by a larger archive during the ",
        "start: it takes ", FormatByteSize(memory_bytes), " of memory, ",
        FormatByteSize(outline.memory_bytes), " were planned; start again"));
  }
  return Publish(argument, std::move(served));
}

absl::Status ArchiveLoader::Publish(const ArchiveArgument& argument,
                                    std::shared_ptr<ServedArchive> served) {
  if (withdrawals_ != nullptr) {
    QUIRE_RETURN_IF_ERROR(withdrawals_->Publish(std::move(served), catalog_));
  } else {
    catalog_.Publish(std::move(served));
  }
  if (!argument.url.empty()) {
    // Text that was removed from the archive leaves the cache, too.
    remote_->RemoveUnnamed(argument);
  }
  return absl::OkStatus();
}

std::vector<LogLine> ArchiveLoader::RemoveOthers(
    const std::vector<ArchiveArgument>& wanted,
    const std::vector<std::string>& kept, const ServingChanged& changed) {
  std::set<absl::string_view> names(kept.begin(), kept.end());
  for (const ArchiveArgument& argument : wanted) {
    names.insert(argument.name);
  }
  std::vector<LogLine> lines;
  const std::shared_ptr<const Catalog::ByName> before = catalog_.Get();
  for (const auto& [name, served] : *before) {
    if (!names.contains(name)) {
      changed(name, false);
      replaced_.push_back(served->archive);
      catalog_.Remove(name);
      lines.push_back({LogLevel::kInfo,
                       absl::StrCat("archive ", name,
                                    ": removed; calls that read it continue")});
    }
  }
  return lines;
}

std::vector<LogLine> ArchiveLoader::Reload(
    const std::vector<ArchiveArgument>& wanted,
    const std::vector<std::string>& kept, const ServingChanged& changed,
    const std::function<void(bool)>& ended, bool manifests_only) {
  // Remove first: new archives may use the memory.
  std::vector<LogLine> lines = RemoveOthers(wanted, kept, changed);
  std::vector<std::string> unchanged;
  for (const ArchiveArgument& argument : wanted) {
    if (stop_) {
      break;
    }
    const bool is_served = catalog_.Contains(argument.name);
    if (manifests_only && is_served && argument.url.empty()) {
      const auto served = catalog_.Find(argument.name);
      if (served.ok() && (*served)->archive->path() == argument.path &&
          !Archive::MayHaveChanged(*(*served)->archive)) {
        continue;
      }
    }
    const absl::StatusOr<std::string> outcome = ReloadOne(argument);
    const std::string archive = absl::StrCat("archive ", argument.name);
    if (outcome.ok() && outcome->empty()) {
      if (manifests_only) {
        continue;
      }
      unchanged.push_back(
          absl::StrCat(archive, ": unchanged; its ", kBlocksNotChecked));
      continue;
    }
    ended(outcome.ok());
    if (!outcome.ok()) {
      lines.push_back(
          {LogLevel::kWarning,
           absl::StrCat(archive,
                        is_served ? " stays unchanged: " : " is left out: ",
                        outcome.status().message())});
    } else {
      changed(argument.name, true);
      lines.push_back({LogLevel::kInfo, absl::StrCat(archive, ": ", *outcome)});
    }
  }
  if (remote_ != nullptr && kept.empty() && !stop_) {
    remote_->RemoveOthers(wanted);
  }
  FitCache(HeldBytes());
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
  // Kept only until the end of this function: many may be replaced, one after
  // the other, with the memory for one more.
  const std::shared_ptr<const ServedArchive> served =
      catalog_.Find(argument.name).value_or(nullptr);
  const bool is_remote = !argument.url.empty();
  if (is_remote && remote_ == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        argument.url,
        ": the server was started without archives in object stores; start it "
        "again"));
  }
  if (is_remote) {
    QUIRE_RETURN_IF_ERROR(remote_->PrepareOutline(argument, &stop_));
  }
  QUIRE_ASSIGN_OR_RETURN(
      const ArchiveOutline outline,
      Archive::ReadOutline(argument.path,
                           served == nullptr ? nullptr : served->archive.get(),
                           is_remote));
  if (served != nullptr && outline.files == served->archive->files()) {
    return "";
  }
  // The old archive is freed after the last call that reads it, so both must
  // fit, along with earlier replaced ones still being read.
  ReloadNeed need = HeldBytes();
  need.fresh_bytes = outline.new_memory_bytes;
  QUIRE_RETURN_IF_ERROR(CheckReload(plan_, need));
  FitCache(need);
  // Helpers get what the plan leaves for archives.
  const uint64_t space_bytes = plan_.archives_bytes + plan_.reload_bytes;
  const uint64_t used_bytes = need.served_bytes + need.replaced_bytes +
                              need.fresh_bytes + outline.opening_bytes;
  std::shared_ptr<ServedArchive> fresh;
  QUIRE_RETURN_IF_ERROR(OpenInParallel(
      {OpeningNeed()}, space_bytes - std::min(space_bytes, used_bytes), stop_,
      [&](size_t /*index*/, OpeningHelpers* helpers) -> absl::Status {
        QUIRE_ASSIGN_OR_RETURN(fresh, OpenOne(argument, served.get(), helpers));
        return absl::OkStatus();
      }));
  // Check again with the actual size: the path may name another archive by now.
  need = HeldBytes(fresh->archive.get());
  QUIRE_RETURN_IF_ERROR(CheckReload(plan_, need));
  FitCache(need);
  // The same text in other files: a copy that replaces damaged files.
  const bool is_same_text =
      served != nullptr &&
      fresh->archive->info().uuid == served->archive->info().uuid;
  const bool has_grown =
      served != nullptr && !is_same_text &&
      fresh->archive->FindState(served->archive->info().uuid).has_value();
  std::string line = absl::StrCat(
      is_same_text        ? "same contents in new files, "
      : served == nullptr ? "added, "
      : has_grown         ? "has grown, "
                          : "replaced, ",
      FormatCounted(fresh->archive->info().document_count, "document",
                    "documents"),
      is_same_text ? "; its " : "", is_same_text ? kBlocksNotChecked : "");
  QUIRE_RETURN_IF_ERROR(Publish(argument, std::move(fresh)));
  if (served != nullptr) {
    replaced_.push_back(served->archive);
  }
  return line;
}

ReloadNeed ArchiveLoader::HeldBytes(const Archive* fresh) {
  absl::flat_hash_set<const void*> parts;
  const auto add = [&](const Archive& archive, uint64_t& sum) {
    archive.VisitMemoryParts([&](const void* part, uint64_t bytes_max) {
      sum += parts.insert(part).second ? bytes_max : 0;
    });
  };
  ReloadNeed need;
  const std::shared_ptr<const Catalog::ByName> archives = catalog_.Get();
  for (const auto& [name, served] : *archives) {
    add(*served->archive, need.served_bytes);
  }
  // Kept until the end, so that no two parts have one address.
  std::vector<std::shared_ptr<const Archive>> replaced_archives;
  std::erase_if(replaced_, [&](const std::weak_ptr<const Archive>& replaced) {
    replaced_archives.push_back(replaced.lock());
    if (replaced_archives.back() == nullptr) {
      return true;
    }
    add(*replaced_archives.back(), need.replaced_bytes);
    return false;
  });
  if (fresh != nullptr) {
    add(*fresh, need.fresh_bytes);
  }
  return need;
}

void ArchiveLoader::FitCache(const ReloadNeed& need) {
  // Rules that were added since the start.
  const uint64_t withdrawals_bytes =
      withdrawals_ == nullptr ? 0 : withdrawals_->HeldBytes();
  store_.ResizeCache(CacheBytesBeside(
      plan_, need.served_bytes + need.replaced_bytes + need.fresh_bytes +
                 withdrawals_bytes -
                 std::min(withdrawals_bytes, plan_.withdrawals_bytes)));
}

}  // namespace quire
