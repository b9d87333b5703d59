// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/archive_loader.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/status_macros.h"
#include "server/service/catalog/drive_report.h"
#include "server/service/catalog/parallel_opening.h"

namespace quire {
namespace {

// Limit on lines about unchanged archives in a reload's report.
constexpr size_t kUnchangedLinesMax = 3;
// Local copies of archives that are in the list and not open.
constexpr size_t kClosedCopiesMax = 1000;
// Upper bound on openings of listed archives at a time.
constexpr uint64_t kListedOpeningsMax = 16;
// A remote archive may be replaced while it is opened.
constexpr int kRemoteOpeningsMax = 3;
// A reload reads no blocks.
constexpr char kBlocksNotChecked[] =
    "blocks were not checked: quired verify does that";

// Adds a line for each of a few names, or one for many.
void AddSummary(const std::vector<std::string>& names, absl::string_view what,
                std::vector<LogLine>& lines) {
  if (names.size() > kUnchangedLinesMax) {
    lines.push_back(
        {LogLevel::kInfo, absl::StrCat(names.size(), " archives: ", what)});
    return;
  }
  for (const std::string& name : names) {
    lines.push_back(
        {LogLevel::kInfo, absl::StrCat("archive ", name, ": ", what)});
  }
}

// Returns rules for the documents of `before` that were removed from `after`.
std::vector<WithdrawalRule> RemovedSince(const Archive& before,
                                         const Archive& after) {
  std::vector<WithdrawalRule> rules;
  const std::optional<ArchiveView> view = after.FindState(before.info().uuid);
  if (!view.has_value() || view->removals_hash == 0) {
    return rules;
  }
  const uint64_t count =
      std::min(view->document_count, before.info().document_count);
  for (uint64_t i = 0; i < count; ++i) {
    if (after.IsRedacted({i}) && !before.IsRedacted({i})) {
      rules.push_back({.value = before.GetDocument({i}).value().id,
                       .action = Withdrawal::kBlock});
    }
  }
  return rules;
}

// Withdraws the documents that the rules match.
// Errors: as WithdrawnDocuments::Resolve().
absl::Status WithdrawAll(const ServedArchive& archive,
                         const std::vector<WithdrawalRule>& rules) {
  QUIRE_ASSIGN_OR_RETURN(auto documents,
                         WithdrawnDocuments::Resolve(*archive.archive, rules));
  archive.withdrawal->Set(std::move(documents));
  return absl::OkStatus();
}

// Returns the names of the archives to be served that are not of the list.
std::set<absl::string_view> NamedOf(const std::vector<ArchiveArgument>& wanted,
                                    const std::vector<std::string>& kept) {
  std::set<absl::string_view> names(kept.begin(), kept.end());
  for (const ArchiveArgument& argument : wanted) {
    if (!argument.is_listed) {
      names.insert(argument.name);
    }
  }
  return names;
}

}  // namespace

ArchiveLoader::ArchiveLoader(const ServerOptions& options,
                             const MemoryPlan& plan,
                             std::vector<PlannedArchive> planned,
                             const std::vector<PlannedListed>& listed,
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
      remote_(remote),
      space_(plan_, catalog, store, withdrawals) {
  Catalog::ListedByName entries;
  for (const PlannedListed& one : listed) {
    entries.emplace(
        one.argument.name,
        NewListed(one.argument,
                  one.outline.has_value() ? &*one.outline : nullptr));
  }
  catalog_.SetListed(std::move(entries));
  if (withdrawals_ != nullptr) {
    std::set<absl::string_view> read;
    for (const auto& [argument, outline] : planned_) {
      read.insert(argument.name);
      NoteUnopened(argument, outline.info);
    }
    for (ArchiveArgument argument : options_.archives) {
      if (argument.is_listed || read.contains(argument.name)) {
        continue;
      }
      if (!argument.url.empty() && options_.store.has_value()) {
        // A URL without an address here is refused when it is opened.
        RemoteArchives::SetPath(*options_.store, argument).IgnoreError();
      }
      NoteUnread(argument);
    }
  }
}

void ArchiveLoader::NoteUnopened(const ArchiveArgument& argument,
                                 const ArchiveInfo& info) {
  if (withdrawals_ != nullptr) {
    SetParts(argument, SharedParts(info));
  }
}

void ArchiveLoader::NoteUnread(const ArchiveArgument& argument,
                               bool is_awaited) {
  if (withdrawals_ == nullptr) {
    return;
  }
  SharedParts parts;
  if (argument.is_listed) {
    const auto listed = catalog_.GetListed();
    if (const auto found = listed->find(argument.name);
        found != listed->end()) {
      parts = found->second->parts();
    }
  } else {
    const auto unopened = catalog_.GetUnopened();
    if (const auto found = unopened->find(argument.name);
        found != unopened->end()) {
      parts = found->second->parts;
    } else if (const auto open = catalog_.FindOpen(argument.name);
               open != nullptr) {
      parts = SharedParts(open->archive->info());
    }
  }
  parts.Examine(argument);
  SetParts(argument, std::move(parts), is_awaited);
}

void ArchiveLoader::NoteReplaced(const std::string& name) {
  if (withdrawals_ == nullptr) {
    return;
  }
  MutexLock lock(&marks_mutex_);
  if (const auto open = catalog_.FindOpen(name);
      open != nullptr && open->withdrawal->Get() != nullptr) {
    NoteFormerParts(name, SharedParts(open->archive->info()));
  }
}

void ArchiveLoader::NoteRemoved(const std::string& name) {
  NoteReplaced(name);
  if (withdrawals_ == nullptr) {
    return;
  }
  MutexLock lock(&marks_mutex_);
  const auto unopened = catalog_.GetUnopened();
  if (const auto found = unopened->find(name); found != unopened->end()) {
    NoteFormerParts(name, found->second->parts);
  }
  const auto listed = catalog_.GetListed();
  if (const auto found = listed->find(name);
      found != listed->end() && catalog_.FindOpen(name) == nullptr) {
    NoteFormerParts(name, found->second->parts());
  }
}

void ArchiveLoader::NoteFormerParts(const std::string& name,
                                    const SharedParts& parts) {
  if (withdrawals_->HasRulesFor(name)) {
    catalog_.NoteFormer(name, parts);
  }
}

std::string ArchiveLoader::WithholdDictionary(const ServedArchive& before,
                                              const std::string& present_hash) {
  ArchiveInfo info;
  info.dictionary_hash = before.archive->info().dictionary_hash;
  if (info.dictionary_hash.empty() || info.dictionary_hash == present_hash) {
    return "";
  }
  catalog_.NoteRedacted(SharedParts(info));
  std::string first;
  uint64_t count = 0;
  const auto archives = catalog_.Get();
  for (const auto& [name, other] : *archives) {
    if (name != before.name &&
        other->archive->info().dictionary_hash == info.dictionary_hash) {
      first = count == 0 ? name : first;
      ++count;
    }
  }
  return count == 0
             ? ""
             : absl::StrCat(
                   "; its earlier dictionary had their text, is withheld, and "
                   "is that of ",
                   FormatCounted(count, "other archive", "other archives"),
                   ", such as ", first, ": build them again");
}

void ArchiveLoader::SetParts(const ArchiveArgument& argument, SharedParts parts,
                             bool is_awaited) {
  MutexLock lock(&marks_mutex_);
  if (argument.is_listed) {
    const auto listed = catalog_.GetListed();
    if (const auto found = listed->find(argument.name);
        found != listed->end()) {
      if (catalog_.FindOpen(argument.name) == nullptr &&
          found->second->parts() != parts) {
        NoteFormerParts(argument.name, found->second->parts());
      }
      found->second->SetParts(std::move(parts));
    }
    return;
  }
  catalog_.NoteUnopened(
      argument.name, {.neighbourhood = NeighbourhoodOf(argument),
                      .parts = std::move(parts),
                      .may_withdraw = withdrawals_->HasRulesFor(argument.name),
                      .is_awaited = is_awaited});
}

void ArchiveLoader::ForgetOthers(const std::vector<ArchiveArgument>& wanted,
                                 const std::vector<std::string>& kept) {
  const std::set<absl::string_view> names = NamedOf(wanted, kept);
  const auto unopened = catalog_.GetUnopened();
  for (const auto& [name, archive] : *unopened) {
    if (!names.contains(name)) {
      NoteRemoved(name);
      catalog_.ForgetUnopened(name);
    }
  }
}

std::vector<ArchiveArgument> ArchiveLoader::InOrderOfOpening(
    std::vector<ArchiveArgument> wanted) const {
  if (withdrawals_ != nullptr) {
    std::stable_partition(wanted.begin(), wanted.end(),
                          [this](const ArchiveArgument& argument) {
                            return withdrawals_->HasRulesFor(argument.name);
                          });
  }
  return wanted;
}

absl::Status ArchiveLoader::PrepareRemoteOutline(
    const ArchiveArgument& argument) {
  if (argument.url.empty()) {
    return absl::OkStatus();
  }
  QUIRE_RETURN_IF_ERROR(CheckHasStore(argument));
  NoteUnread(argument, /*is_awaited=*/true);
  absl::Status status = remote_->PrepareOutline(argument, &stop_);
  if (!status.ok()) {
    NoteUnread(argument);
  }
  return status;
}

absl::StatusOr<ArchiveOutline> ArchiveLoader::ReadAndNoteOutline(
    const ArchiveArgument& argument, const Archive* shared) {
  absl::StatusOr<ArchiveOutline> outline =
      Archive::ReadOutline(argument.path, shared, !argument.url.empty());
  if (!outline.ok()) {
    NoteUnread(argument);
  } else if (argument.is_listed || shared == nullptr ||
             outline->files != shared->files()) {
    NoteUnopened(argument, outline->info);
  } else if (catalog_.GetUnopened()->contains(argument.name)) {
    // The contents that are open are at the path again.
    catalog_.ForgetUnopened(argument.name);
  }
  return outline;
}

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
          argument, workspaces_, wire_encoders_, options_.report_damage,
          options, options_.range_decode, previous, place_file);
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
    const std::atomic<bool>& cancel, OpeningHelpers* helpers) {
  if (options_.before_opening) {
    options_.before_opening(argument.name);
  }
  const ArchiveOpenOptions open_options = {
      .without_damaged_indexes = options_.skip_broken,
      .direct_io = options_.direct_io,
      .cancel = &cancel,
      .helpers = helpers};
  QUIRE_ASSIGN_OR_RETURN(
      std::shared_ptr<ServedArchive> served,
      argument.url.empty()
          ? OpenServedArchive(argument, workspaces_, wire_encoders_,
                              options_.report_damage, open_options,
                              options_.range_decode, previous)
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
  QUIRE_ASSIGN_OR_RETURN(
      std::shared_ptr<ServedArchive> served,
      OpenOne(argument, /*previous=*/nullptr, stop_, helpers));
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

void ArchiveLoader::WithdrawRemoved(
    const std::string& name, const Archive& contents,
    const std::weak_ptr<const ServedArchive>& fresh) {
  std::vector<std::shared_ptr<const ServedArchive>> read;
  {
    MutexLock lock(&earlier_mutex_);
    // Names that are not served any more.
    if (earlier_.size() > 2 * catalog_.size()) {
      std::erase_if(earlier_, [](const auto& entry) {
        return std::ranges::all_of(
            entry.second, [](const auto& one) { return one.expired(); });
      });
    }
    auto& earlier = earlier_[name];
    std::erase_if(earlier, [&](const auto& one) {
      read.push_back(one.lock());
      return read.back() == nullptr;
    });
    earlier.push_back(fresh);
  }
  for (const std::shared_ptr<const ServedArchive>& archive : read) {
    if (archive == nullptr) {
      continue;
    }
    std::vector<WithdrawalRule> removed =
        RemovedSince(*archive->archive, contents);
    if (removed.empty()) {
      continue;
    }
    const absl::Status status =
        withdrawals_ != nullptr
            ? withdrawals_->WithdrawRemoved(*archive, std::move(removed))
            : WithdrawAll(*archive, removed);
    if (!status.ok() && options_.say) {
      options_.say(LogLevel::kError,
                   absl::StrCat("archive ", name,
                                ": calls that read its earlier contents get "
                                "documents that were removed until they end: ",
                                status.message()));
    }
  }
}

absl::Status ArchiveLoader::Publish(const ArchiveArgument& argument,
                                    std::shared_ptr<ServedArchive> served) {
  NoteReplaced(argument.name);
  // No reference to it: that would make it look like one that a call reads.
  const std::weak_ptr<const ServedArchive> fresh = served;
  const std::shared_ptr<const Archive> contents = served->archive;
  if (withdrawals_ != nullptr) {
    QUIRE_RETURN_IF_ERROR(withdrawals_->Publish(std::move(served), catalog_));
  } else {
    catalog_.Publish(std::move(served));
  }
  WithdrawRemoved(argument.name, *contents, fresh);
  if (!argument.url.empty()) {
    // Text that was removed from the archive leaves the cache, too.
    remote_->RemoveUnnamed(argument);
  }
  return absl::OkStatus();
}

std::vector<LogLine> ArchiveLoader::RemoveOthers(
    const std::vector<ArchiveArgument>& wanted,
    const std::vector<std::string>& kept, const ServingChanged& changed) {
  const std::set<absl::string_view> names = NamedOf(wanted, kept);
  std::vector<LogLine> lines;
  const std::shared_ptr<const Catalog::ByName> before = catalog_.Get();
  for (const auto& [name, served] : *before) {
    // ReloadList() removes the others.
    if (served->listed == nullptr && !names.contains(name)) {
      NoteRemoved(name);
      changed(name, false);
      space_.Retired(served->archive);
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
  ForgetOthers(wanted, kept);
  if (!manifests_only) {
    for (LogLine& line : ReloadList(wanted, changed)) {
      lines.push_back(std::move(line));
    }
  }
  std::vector<std::string> unchanged;
  for (const ArchiveArgument& argument : InOrderOfOpening(wanted)) {
    if (stop_) {
      break;
    }
    const auto served = catalog_.FindOpen(argument.name);
    if (argument.is_listed && served == nullptr) {
      // Its files are read when it is opened.
      continue;
    }
    const bool is_served = served != nullptr;
    if (manifests_only && is_served && argument.url.empty() &&
        served->archive->path() == argument.path &&
        !Archive::MayHaveChanged(*served->archive)) {
      continue;
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
  space_.Fit();
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
  std::unique_ptr<Claim> claim;
  if (argument.is_listed) {
    claim = std::make_unique<Claim>(*this, argument.name);
  }
  // Kept only until the end of this function: many may be replaced, one after
  // the other, with the memory for one more.
  const std::shared_ptr<const ServedArchive> served =
      catalog_.FindOpen(argument.name);
  if (argument.is_listed && served == nullptr) {
    // It was closed in between.
    return "";
  }
  QUIRE_RETURN_IF_ERROR(PrepareRemoteOutline(argument));
  QUIRE_ASSIGN_OR_RETURN(
      const ArchiveOutline outline,
      ReadAndNoteOutline(argument,
                         served == nullptr ? nullptr : served->archive.get()));
  if (served != nullptr && outline.files == served->archive->files()) {
    return "";
  }
  // The old archive is freed after the last call that reads it, so both must
  // fit, along with earlier replaced ones still being read.
  QUIRE_ASSIGN_OR_RETURN(ArchiveSpace::Reservation reservation,
                         space_.Reserve(outline.new_memory_bytes));
  // Helpers get what the plan leaves for archives.
  const uint64_t free_bytes = space_.FreeBytes();
  QUIRE_ASSIGN_OR_RETURN(
      std::shared_ptr<ServedArchive> fresh,
      OpenWithHelpers(
          argument, served.get(), stop_,
          free_bytes - std::min(free_bytes, outline.opening_bytes)));
  // Check again with the actual size: the path may name another archive by now.
  QUIRE_RETURN_IF_ERROR(space_.Resize(reservation, fresh->archive));
  // The same text in other files: a copy that replaces damaged files.
  const bool is_same_text =
      served != nullptr &&
      fresh->archive->info().uuid == served->archive->info().uuid;
  const std::optional<ArchiveView> before =
      served == nullptr
          ? std::nullopt
          : fresh->archive->FindState(served->archive->info().uuid);
  const bool is_redacted = before.value_or(ArchiveView()).removals_hash != 0;
  std::string line = absl::StrCat(
      is_same_text          ? "same contents in new files, "
      : served == nullptr   ? "added, "
      : !before.has_value() ? "replaced, "
      : is_redacted         ? "documents were removed, "
                            : "has grown, ",
      FormatCounted(fresh->archive->info().document_count, "document",
                    "documents"),
      is_same_text ? "; its " : "", is_same_text ? kBlocksNotChecked : "");
  if (argument.is_listed) {
    fresh->listed = served->listed;
    fresh->listed->Opened(fresh, ListedArchive::Clock::now());
  }
  if (served != nullptr) {
    space_.Retired(served->archive);
  }
  const std::string hash = fresh->archive->info().dictionary_hash;
  QUIRE_RETURN_IF_ERROR(Publish(argument, std::move(fresh)));
  if (is_redacted) {
    line += WithholdDictionary(*served, hash);
  }
  return line;
}

absl::StatusOr<std::shared_ptr<ServedArchive>> ArchiveLoader::OpenWithHelpers(
    const ArchiveArgument& argument, const ServedArchive* previous,
    const std::atomic<bool>& cancel, uint64_t helper_bytes) {
  std::shared_ptr<ServedArchive> fresh;
  QUIRE_RETURN_IF_ERROR(OpenInParallel(
      {OpeningNeed()}, helper_bytes, cancel,
      [&](size_t /*index*/, OpeningHelpers* helpers) -> absl::Status {
        QUIRE_ASSIGN_OR_RETURN(fresh,
                               OpenOne(argument, previous, cancel, helpers));
        return absl::OkStatus();
      }));
  return fresh;
}

void ArchiveLoader::Stop() {
  stop_ = true;
  // An opening that is not in the list any more is cancelled already, and one
  // that begins later finds the mark above.
  const std::shared_ptr<const Catalog::ListedByName> all = catalog_.GetListed();
  for (const auto& [name, listed] : *all) {
    listed->Cancel();
  }
}

absl::Status ArchiveLoader::CheckHasStore(
    const ArchiveArgument& argument) const {
  return remote_ != nullptr
             ? absl::OkStatus()
             : absl::FailedPreconditionError(absl::StrCat(
                   argument.url,
                   ": the server was started without archives in object "
                   "stores; start it again"));
}

ArchiveLoader::Claim::Claim(ArchiveLoader& loader, std::string name)
    : loader_(loader), name_(std::move(name)) {
  MutexLock lock(&loader_.claims_mutex_);
  while (!loader_.claims_.insert(name_).second) {
    loader_.claim_ended_.Wait(&loader_.claims_mutex_);
  }
}

std::unique_ptr<ArchiveLoader::Claim> ArchiveLoader::Claim::Try(
    ArchiveLoader& loader, std::string name) {
  MutexLock lock(&loader.claims_mutex_);
  return loader.claims_.insert(name).second
             ? std::unique_ptr<Claim>(
                   new Claim(loader, std::move(name), IsHeld()))
             : nullptr;
}

ArchiveLoader::Claim::~Claim() {
  {
    MutexLock lock(&loader_.claims_mutex_);
    loader_.claims_.erase(name_);
  }
  loader_.claim_ended_.NotifyAll();
}

std::shared_ptr<ListedArchive> ArchiveLoader::NewListed(
    const ArchiveArgument& argument, const ArchiveOutline* outline) {
  v1::ArchiveDescription description;
  description.set_name(argument.name);
  if (outline != nullptr) {
    description =
        DescribeArchive(argument.name, outline->info, v1::ARCHIVE_STATE_CLOSED);
  }
  SharedParts parts;
  if (outline != nullptr) {
    parts = SharedParts(outline->info);
  } else if (withdrawals_ != nullptr) {
    parts.Examine(argument);
  }
  auto listed = std::make_shared<ListedArchive>(
      argument, std::move(description), std::move(parts));
  listed->SetMayWithdraw(withdrawals_ != nullptr &&
                         withdrawals_->HasRulesFor(argument.name));
  return listed;
}

void ArchiveLoader::MarkWithdrawals() {
  MutexLock lock(&marks_mutex_);
  if (withdrawals_ != nullptr) {
    std::set<std::string> withdrawing;
    const auto unopened = catalog_.GetUnopened();
    for (const auto& [name, archive] : *unopened) {
      if (withdrawals_->HasRulesFor(name)) {
        withdrawing.insert(name);
      }
    }
    catalog_.MarkUnopened(withdrawing);
    catalog_.MarkFormer([this](const std::string& name) {
      return withdrawals_->HasRulesFor(name);
    });
  }
  const std::shared_ptr<const Catalog::ListedByName> all = catalog_.GetListed();
  for (const auto& [name, listed] : *all) {
    listed->SetMayWithdraw(withdrawals_ != nullptr &&
                           withdrawals_->HasRulesFor(name));
  }
}

std::vector<LogLine> ArchiveLoader::ReloadList(
    const std::vector<ArchiveArgument>& wanted, const ServingChanged& changed) {
  const std::shared_ptr<const Catalog::ListedByName> before =
      catalog_.GetListed();
  Catalog::ListedByName entries;
  std::vector<LogLine> lines;
  std::vector<std::string> added;
  for (const ArchiveArgument& argument : wanted) {
    if (!argument.is_listed) {
      continue;
    }
    const auto known = before->find(argument.name);
    if (known != before->end() &&
        known->second->argument().path == argument.path &&
        known->second->argument().url == argument.url) {
      known->second->Forgive();
      entries.emplace(argument.name, known->second);
      continue;
    }
    std::optional<ArchiveOutline> outline;
    if (argument.url.empty()) {
      absl::StatusOr<ArchiveOutline> read =
          Archive::ReadOutline(argument.path, nullptr, false);
      const absl::Status usable =
          read.ok() ? CheckFitsAlone(plan_, read->memory_bytes) : read.status();
      if (!usable.ok()) {
        lines.push_back({LogLevel::kWarning,
                         absl::StrCat("archive ", argument.name,
                                      " cannot be opened now, and is tried "
                                      "again on first use: ",
                                      usable.message())});
      }
      if (read.ok()) {
        outline = *std::move(read);
      }
    }
    entries.emplace(
        argument.name,
        NewListed(argument, outline.has_value() ? &*outline : nullptr));
    added.push_back(argument.name);
  }
  const Catalog::ListedByName now = entries;
  for (const auto& [name, listed] : *before) {
    if (!now.contains(name) || now.find(name)->second != listed) {
      NoteRemoved(name);
    }
  }
  catalog_.SetListed(std::move(entries));
  const auto stays = [&](const auto& entry) {
    const auto found = now.find(entry.first);
    return found != now.end() && found->second == entry.second;
  };
  for (const auto& entry : *before) {
    if (!stays(entry)) {
      entry.second->Cancel();
    }
  }
  std::vector<std::string> removed;
  for (const auto& entry : *before) {
    if (stays(entry)) {
      continue;
    }
    const auto& [name, listed] = entry;
    // After an opening in progress, which ends soon. There are no new ones.
    const Claim claim(*this, name);
    if (const auto served = catalog_.FindOpen(name);
        served != nullptr && served->listed == listed) {
      space_.Retired(served->archive);
      catalog_.Close(name);
    }
    if (!now.contains(name)) {
      changed(name, false);
      catalog_.Remove(name);
      removed.push_back(name);
    }
  }
  for (const std::string& name : added) {
    changed(name, true);
  }
  AddSummary(added, "added, opened on first use", lines);
  AddSummary(removed, "removed; calls that read it continue", lines);
  return lines;
}

bool ArchiveLoader::RemoveOldCopy(const ArchiveArgument& wanted) {
  const std::shared_ptr<const Catalog::ListedByName> all = catalog_.GetListed();
  std::vector<const ListedArchive*> closed;
  for (const auto& [name, listed] : *all) {
    if (!listed->argument().url.empty() && name != wanted.name &&
        remote_->HasCopy(listed->argument()) &&
        catalog_.FindOpen(name) == nullptr) {
      closed.push_back(listed.get());
    }
  }
  std::sort(closed.begin(), closed.end(),
            [](const ListedArchive* a, const ListedArchive* b) {
              return a->used_at() < b->used_at();
            });
  for (const ListedArchive* listed : closed) {
    const std::unique_ptr<Claim> claim =
        Claim::Try(*this, listed->argument().name);
    if (claim != nullptr &&
        catalog_.FindOpen(listed->argument().name) == nullptr) {
      remote_->RemoveCopy(listed->argument());
      return true;
    }
  }
  return false;
}

absl::Status ArchiveLoader::PrepareListedCopy(const ListedArchive& listed) {
  const ArchiveArgument& argument = listed.argument();
  const std::atomic<bool>* cancel = &listed.is_cancelled();
  while (remote_->copy_count() > kClosedCopiesMax && RemoveOldCopy(argument)) {
  }
  while (true) {
    absl::Status status = remote_->PrepareOutline(argument, cancel);
    if (status.ok()) {
      status = remote_->PrepareIndexes(argument, cancel);
    }
    if (!absl::IsResourceExhausted(status) ||
        !(RemoveOldCopy(argument) ||
          (space_.CloseRemote() && RemoveOldCopy(argument)))) {
      return status;
    }
  }
}

absl::StatusOr<ArchiveLoader::ListedOutcome> ArchiveLoader::OpenListed(
    const std::shared_ptr<ListedArchive>& listed) {
  const ArchiveArgument& argument = listed->argument();
  const Claim claim(*this, argument.name);
  {
    const std::shared_ptr<const Catalog::ListedByName> all =
        catalog_.GetListed();
    const auto found = all->find(argument.name);
    if (found == all->end() || found->second != listed ||
        catalog_.FindOpen(argument.name) != nullptr) {
      return ListedOutcome::kNothingToDo;
    }
  }
  if (stop_) {
    return absl::CancelledError("the server stops");
  }
  const bool is_remote = !argument.url.empty();
  if (is_remote) {
    QUIRE_RETURN_IF_ERROR(CheckHasStore(argument));
    QUIRE_RETURN_IF_ERROR(PrepareListedCopy(*listed));
  }
  // Calls may still read the archive since it was closed.
  const std::shared_ptr<const ServedArchive> previous = listed->last();
  QUIRE_ASSIGN_OR_RETURN(
      const ArchiveOutline outline,
      ReadAndNoteOutline(
          argument, previous == nullptr ? nullptr : previous->archive.get()));
  QUIRE_ASSIGN_OR_RETURN(std::optional<ArchiveSpace::Reservation> reservation,
                         space_.ReserveListed(outline));
  if (!reservation.has_value()) {
    return ListedOutcome::kLater;
  }
  // Other openings may have the same free memory.
  QUIRE_ASSIGN_OR_RETURN(
      std::shared_ptr<ServedArchive> served,
      OpenWithHelpers(argument, previous.get(), listed->is_cancelled(),
                      space_.FreeBytes() / kListedOpeningsMax));
  // It may have been replaced by a larger one.
  QUIRE_RETURN_IF_ERROR(space_.Resize(*reservation, served->archive));
  served->listed = listed;
  listed->Opened(served, ListedArchive::Clock::now());
  QUIRE_RETURN_IF_ERROR(Publish(argument, std::move(served)));
  listed->Published();
  return ListedOutcome::kOpened;
}

}  // namespace quire
