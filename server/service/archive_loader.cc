// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/archive_loader.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/check.h"
#include "codecs/base/status_macros.h"
#include "server/service/calls/container_parts.h"
#include "server/service/catalog/drive_report.h"
#include "server/service/catalog/parallel_opening.h"
#include "server/service/copy_space.h"

namespace quire {
namespace {

// Limit on lines about unchanged archives in a reload's report.
constexpr size_t kUnchangedLinesMax = 3;
// Upper bound on openings of listed archives at a time.
constexpr uint64_t kListedOpeningsMax = 16;
// A remote archive may be replaced while it is opened.
constexpr int kRemoteOpeningsMax = 3;
// A reload reads no blocks.
constexpr char kBlocksNotChecked[] =
    "blocks were not checked: quired verify does that";
constexpr char kRemoved[] = "removed; calls that read it continue";

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

// Withdraws the documents that the rules match, or all after an error.
// Errors: as WithdrawnDocuments::Resolve().
absl::Status WithdrawBy(const ServedArchive& archive,
                        const std::vector<WithdrawalRule>& rules) {
  absl::StatusOr<std::shared_ptr<const WithdrawnDocuments>> documents =
      WithdrawnDocuments::Resolve(*archive.archive, rules);
  absl::Status status = documents.status();
  archive.withdrawal->Set(documents.ok()
                              ? *std::move(documents)
                              : WithdrawnDocuments::All(*archive.archive));
  return status;
}

}  // namespace

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
      remote_(remote),
      space_(plan_, catalog, store, withdrawals) {
  if (withdrawals_ != nullptr) {
    catalog_.SetRules([this](absl::string_view name) {
      return withdrawals_->HasRulesFor(name);
    });
    withdrawals_->SetServices(
        {.fields_of =
             [this](const std::shared_ptr<const ServedArchive>& archive) {
               return BlockingFieldLoad(store_, archive);
             },
         .reserve =
             [this](uint64_t bytes) -> absl::StatusOr<std::shared_ptr<void>> {
           QUIRE_ASSIGN_OR_RETURN(ArchiveSpace::Reservation reservation,
                                  space_.Reserve(bytes));
           return std::make_shared<ArchiveSpace::Reservation>(
               std::move(reservation));
         },
         .cancel = &stop_});
  }
  for (const auto& [argument, outline] : planned_) {
    catalog_.Add(argument,
                 KnownOf(argument, outline.ok() ? &*outline : nullptr));
    if (!argument.is_listed && !outline.ok()) {
      catalog_.Begin(argument.name, Catalog::Purpose::kReplace)->Fail();
    }
  }
  std::erase_if(planned_, [](const PlannedArchive& archive) {
    return archive.argument.is_listed || !archive.outline.ok();
  });
}

Catalog::Known ArchiveLoader::KnownOf(const ArchiveArgument& argument,
                                      const ArchiveOutline* outline) const {
  Catalog::Known known;
  if (outline != nullptr) {
    known.description =
        DescribeArchive(argument.name, outline->info, v1::ARCHIVE_STATE_CLOSED);
    known.parts = SharedParts(outline->info);
  } else if (withdrawals_ != nullptr) {
    known.parts.Examine(argument);
  }
  return known;
}

void ArchiveLoader::NoteUnread(const ArchiveArgument& argument) {
  if (withdrawals_ != nullptr) {
    SharedParts parts = catalog_.GetParts(argument.name);
    parts.Examine(argument);
    catalog_.SetParts(argument.name, std::move(parts));
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
    const ArchiveArgument& argument, MayBeStale may_be_stale) {
  if (argument.url.empty()) {
    return absl::OkStatus();
  }
  QUIRE_RETURN_IF_ERROR(CheckHasStore(argument));
  absl::Status status = remote_->PrepareOutline(argument, &stop_, may_be_stale);
  if (!status.ok()) {
    NoteUnread(argument);
  }
  return status;
}

absl::StatusOr<ArchiveOutline> ArchiveLoader::ReadAndNoteOutline(
    const Catalog::Opening& opening) {
  const ArchiveArgument& argument = opening.argument();
  const auto& previous = opening.previous();
  absl::StatusOr<ArchiveOutline> outline = Archive::ReadOutline(
      argument.path, previous == nullptr ? nullptr : previous->archive.get(),
      !argument.url.empty());
  if (outline.ok()) {
    catalog_.SetParts(argument.name, SharedParts(outline->info));
  } else {
    NoteUnread(argument);
  }
  return outline;
}

absl::StatusOr<std::shared_ptr<ServedArchive>> ArchiveLoader::OpenRemote(
    const ArchiveArgument& argument, ArchiveOpenOptions options,
    const ServedArchive* previous) {
  options.direct_io = DirectIo::kOff;
  options.has_sparse_segments = true;
  const MayBeStale may_be_stale = MayBeStaleNow(argument.name);
  const FilePlacer place_file = [this](int fd) {
    return remote_->store().Place(fd).value_or(FilePlacement());
  };
  for (int attempt = 1;; ++attempt) {
    const bool is_last = attempt == kRemoteOpeningsMax;
    absl::Status status = remote_->PrepareIndexes(argument, options.cancel);
    if (status.ok()) {
      absl::StatusOr<std::shared_ptr<ServedArchive>> served = OpenServedArchive(
          argument, workspaces_, wire_encoders_, options_.report_damage,
          options, previous, place_file);
      if (served.ok() || !absl::IsDataLoss(served.status()) || is_last) {
        return served;
      }
      remote_->DropIndexes(argument);
    } else if (is_last ||
               !(absl::IsAborted(status) || absl::IsNotFound(status))) {
      return status;
    }
    QUIRE_RETURN_IF_ERROR(
        remote_->PrepareOutline(argument, options.cancel, may_be_stale));
  }
}

MayBeStale ArchiveLoader::MayBeStaleNow(const std::string& name) const {
  return catalog_.FindOpen(name) == nullptr ? MayBeStale::kYes
                                            : MayBeStale::kNo;
}

void ArchiveLoader::LogStale(const ArchiveArgument& argument) const {
  if (const auto stale = remote_->confirmations().FindStale(argument.path);
      stale.has_value()) {
    options_.log(LogLevel::kWarning,
                 absl::StrCat("archive ", argument.name,
                              " is served from its local copy, which its store "
                              "confirmed ",
                              absl::FormatDuration(
                                  absl::Trunc(stale->age, absl::Seconds(1))),
                              " ago: ", stale->reason));
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
    const Catalog::Opening& opening, OpeningHelpers* helpers) {
  const ArchiveArgument& argument = opening.argument();
  const ServedArchive* const previous = opening.previous().get();
  if (options_.before_opening) {
    options_.before_opening(argument.name);
  }
  const ArchiveOpenOptions open_options = {
      .without_damaged_indexes = options_.skip_broken,
      .direct_io = options_.direct_io,
      .cancel = &opening.is_cancelled(),
      .helpers = helpers};
  QUIRE_ASSIGN_OR_RETURN(
      std::shared_ptr<ServedArchive> served,
      argument.url.empty()
          ? OpenServedArchive(argument, workspaces_, wire_encoders_,
                              options_.report_damage, open_options, previous)
          : OpenRemote(argument, open_options, previous));
  for (const absl::Status& damage : served->archive->index_damages()) {
    options_.log(
        LogLevel::kError,
        absl::StrCat("archive ", argument.name,
                     " is served without a damaged index: ", damage.message()));
  }
  QUIRE_RETURN_IF_ERROR(AddDrives(*served));
  if (!argument.url.empty()) {
    LogStale(argument);
  }
  return served;
}

absl::Status ArchiveLoader::OpenAll(const ServingChanged& changed,
                                    std::vector<BrokenArchive>& broken) {
  std::vector<OpeningNeed> needs;
  for (const auto& [argument, outline] : planned_) {
    needs.push_back({.kept_bytes = outline->memory_bytes,
                     .working_bytes = outline->opening_bytes});
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
      broken.push_back({.name = planned_[i].argument.name,
                        .reason = std::move(outcomes[i])});
    }
  }
  return status;
}

absl::Status ArchiveLoader::OpenPlanned(const PlannedArchive& planned,
                                        OpeningHelpers* helpers) {
  const auto& [argument, outline] = planned;
  std::optional<Catalog::Opening> opening =
      catalog_.Begin(argument.name, Catalog::Purpose::kReplace);
  QUIRE_CHECK(opening.has_value(), "a planned archive without an entry");
  absl::StatusOr<ArchiveSpace::Reservation> reservation =
      space_.Reserve(outline->memory_bytes);
  absl::Status status =
      reservation.ok()
          ? OpenAndPublish(*opening, *reservation, helpers).status()
          : absl::FailedPreconditionError(absl::StrCat(
                argument.path, ": ", reservation.status().message()));
  if (!status.ok() && !absl::IsCancelled(status)) {
    opening->Fail();
  }
  return status;
}

void ArchiveLoader::WithdrawRemoved(const std::string& name,
                                    const Archive& contents) {
  for (const Catalog::Held& held : catalog_.GetHeld()) {
    if (held.is_current || held.served == nullptr ||
        held.served->name != name) {
      continue;
    }
    std::vector<WithdrawalRule> removed =
        RulesForRemoved(*held.archive, contents);
    if (removed.empty()) {
      continue;
    }
    const absl::Status status =
        withdrawals_ != nullptr
            ? withdrawals_->WithdrawRemoved(held.served, std::move(removed))
            : WithdrawBy(*held.served, removed);
    if (!status.ok()) {
      options_.log(LogLevel::kError,
                   absl::StrCat("archive ", name,
                                ": calls that read its earlier contents get no "
                                "more documents, as those that were removed "
                                "cannot be found there: ",
                                status.message()));
    }
  }
}

absl::Status ArchiveLoader::Publish(const Catalog::Opening& opening,
                                    std::shared_ptr<ServedArchive> served) {
  const ArchiveArgument& argument = opening.argument();
  const std::shared_ptr<const Archive> contents = served->archive;
  if (withdrawals_ != nullptr) {
    QUIRE_RETURN_IF_ERROR(withdrawals_->Publish(std::move(served), catalog_,
                                                &opening.is_cancelled()));
  } else {
    catalog_.Publish(std::move(served));
  }
  WithdrawRemoved(argument.name, *contents);
  if (!argument.url.empty()) {
    // Text that was removed from the archive leaves the cache, too.
    remote_->RemoveUnnamed(argument);
  }
  return absl::OkStatus();
}

std::vector<LogLine> ArchiveLoader::RemoveOthers(
    const std::vector<ArchiveArgument>& wanted,
    const std::vector<std::string>& kept, bool always_only,
    const ServingChanged& changed) {
  std::set<absl::string_view> names(kept.begin(), kept.end());
  for (const ArchiveArgument& argument : wanted) {
    names.insert(argument.name);
  }
  const std::vector<ArchiveArgument> removed =
      catalog_.RemoveAllBut([&](const ArchiveArgument& argument) {
        return names.contains(argument.name) ||
               (always_only && argument.is_listed);
      });
  std::vector<std::string> listed;
  std::vector<std::string> others;
  for (const ArchiveArgument& argument : removed) {
    changed(argument.name, false);
    (argument.is_listed ? listed : others).push_back(argument.name);
  }
  std::vector<LogLine> lines;
  for (const std::string& name : others) {
    AddSummary({name}, kRemoved, lines);
  }
  AddSummary(listed, kRemoved, lines);
  return lines;
}

absl::StatusOr<bool> ArchiveLoader::AddEntry(const ArchiveArgument& argument) {
  if (catalog_.Has(argument) || !argument.is_listed) {
    catalog_.Add(argument, {});
    return false;
  }
  if (!argument.url.empty()) {
    catalog_.Add(argument, KnownOf(argument, nullptr));
    return true;
  }
  const absl::StatusOr<ArchiveOutline> outline =
      Archive::ReadOutline(argument.path, nullptr, false);
  catalog_.Add(argument, KnownOf(argument, outline.ok() ? &*outline : nullptr));
  QUIRE_RETURN_IF_ERROR(outline.status());
  QUIRE_RETURN_IF_ERROR(CheckFitsAlone(plan_, outline->memory_bytes));
  return true;
}

void ArchiveLoader::AddEntries(const std::vector<ArchiveArgument>& wanted,
                               bool always_only, const ServingChanged& changed,
                               std::vector<LogLine>& lines) {
  std::vector<std::string> added;
  for (const ArchiveArgument& argument : wanted) {
    if (always_only && argument.is_listed) {
      continue;
    }
    const absl::StatusOr<bool> is_new = AddEntry(argument);
    if (!is_new.ok()) {
      lines.push_back({LogLevel::kWarning,
                       absl::StrCat("archive ", argument.name,
                                    " cannot be opened now, and is tried again "
                                    "on first use: ",
                                    is_new.status().message())});
    }
    if (is_new.value_or(true)) {
      changed(argument.name, true);
      added.push_back(argument.name);
    }
  }
  AddSummary(added, "added, opened on first use", lines);
}

std::vector<LogLine> ArchiveLoader::Reload(
    const std::vector<ArchiveArgument>& wanted,
    const std::vector<std::string>& kept, const ServingChanged& changed,
    const std::function<void(bool)>& ended, Examined examined) {
  const bool are_all = examined == Examined::kAll;
  const bool is_retry = examined == Examined::kUnconfirmed;
  // Remove first: new archives may use the memory.
  std::vector<LogLine> lines;
  if (!is_retry) {
    lines = RemoveOthers(wanted, kept, !are_all, changed);
    AddEntries(wanted, !are_all, changed, lines);
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
    if (IsSettled(argument, served.get(), examined)) {
      continue;
    }
    const absl::StatusOr<std::string> outcome = ReloadOne(argument, is_retry);
    const bool is_served = catalog_.FindOpen(argument.name) != nullptr;
    const std::string archive = absl::StrCat("archive ", argument.name);
    if (outcome.ok() && outcome->empty()) {
      if (!are_all) {
        continue;
      }
      unchanged.push_back(
          absl::StrCat(archive, ": unchanged; its ", kBlocksNotChecked));
      continue;
    }
    // A store that stays silent is no failed reload each time.
    if (outcome.ok() || !is_retry) {
      ended(outcome.ok());
    }
    if (!outcome.ok()) {
      // Those of the list serve from the next call that can open them.
      if (served != nullptr && !is_served && !argument.is_listed) {
        changed(argument.name, false);
      }
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
  if (remote_ != nullptr && kept.empty() && !is_retry && !stop_) {
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

bool ArchiveLoader::IsSettled(const ArchiveArgument& argument,
                              const ServedArchive* served,
                              Examined examined) const {
  switch (examined) {
    case Examined::kAll:
      break;
    case Examined::kManifests:
      return served != nullptr && argument.url.empty() &&
             served->archive->path() == argument.path &&
             !Archive::MayHaveChanged(*served->archive);
    case Examined::kUnconfirmed:
      return argument.url.empty() || remote_ == nullptr ||
             !catalog_.Has(argument) ||
             (served != nullptr &&
              !remote_->confirmations().FindStale(argument.path).has_value());
  }
  return false;
}

absl::StatusOr<std::string> ArchiveLoader::ReloadOne(
    const ArchiveArgument& argument, bool is_retry) {
  std::optional<Catalog::Opening> opening =
      catalog_.Begin(argument.name, Catalog::Purpose::kReplace);
  if (!opening.has_value()) {
    // It was closed in between.
    return "";
  }
  const bool was_stale =
      remote_ != nullptr && catalog_.FindOpen(argument.name) != nullptr &&
      remote_->confirmations().FindStale(argument.path).has_value();
  // A store that was silent for one archive is not asked for the next.
  const std::optional<absl::Status> silence =
      is_retry ? remote_->RecentSilence(argument) : std::nullopt;
  absl::StatusOr<std::string> line =
      silence.has_value() ? *silence : Replace(*opening);
  if (line.ok()) {
    return was_stale && line->empty()
               ? "its store answers again, and confirms its local copy"
               : std::move(line);
  }
  if (catalog_.FindOpen(argument.name) == nullptr) {
    opening->Fail();
  } else if (was_stale) {
    if (const absl::Status may_stay =
            remote_->confirmations().CheckStale(argument.path);
        !may_stay.ok()) {
      opening->Close();
      return absl::Status(
          line.status().code(),
          absl::StrCat("its local copy ", may_stay.message(),
                       ", and is closed: ", line.status().message()));
    }
  }
  return line;
}

absl::StatusOr<std::string> ArchiveLoader::Replace(
    const Catalog::Opening& opening) {
  const ArchiveArgument& argument = opening.argument();
  const std::shared_ptr<const ServedArchive> served =
      catalog_.FindOpen(argument.name);
  QUIRE_RETURN_IF_ERROR(
      PrepareRemoteOutline(argument, MayBeStaleNow(argument.name)));
  QUIRE_ASSIGN_OR_RETURN(const ArchiveOutline outline,
                         ReadAndNoteOutline(opening));
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
      const std::shared_ptr<const Archive> fresh,
      OpenAlone(opening, reservation,
                free_bytes - std::min(free_bytes, outline.opening_bytes)));
  // The same text in other files: a copy that replaces damaged files.
  const bool is_same_text =
      served != nullptr && fresh->info().uuid == served->archive->info().uuid;
  const std::optional<ArchiveView> before =
      served == nullptr ? std::nullopt
                        : fresh->FindState(served->archive->info().uuid);
  const bool is_redacted = before.has_value() && before->removals_hash != 0;
  return absl::StrCat(
      is_same_text          ? "same contents in new files, "
      : served == nullptr   ? "added, "
      : !before.has_value() ? "replaced, "
      : is_redacted         ? "documents were removed, "
                            : "has grown, ",
      FormatCounted(fresh->info().document_count, "document", "documents"),
      is_same_text ? "; its " : "", is_same_text ? kBlocksNotChecked : "",
      is_redacted ? WithholdDictionary(*served, fresh->info().dictionary_hash)
                  : "");
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
  for (const auto& [name, other] : catalog_.Get()) {
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

absl::StatusOr<std::shared_ptr<const Archive>> ArchiveLoader::OpenAlone(
    const Catalog::Opening& opening, ArchiveSpace::Reservation& reservation,
    uint64_t helper_bytes) {
  std::shared_ptr<const Archive> contents;
  QUIRE_RETURN_IF_ERROR(OpenInParallel(
      {OpeningNeed()}, helper_bytes, opening.is_cancelled(),
      [&](size_t /*index*/, OpeningHelpers* helpers) -> absl::Status {
        QUIRE_ASSIGN_OR_RETURN(contents,
                               OpenAndPublish(opening, reservation, helpers));
        return absl::OkStatus();
      }));
  return contents;
}

absl::StatusOr<std::shared_ptr<const Archive>> ArchiveLoader::OpenAndPublish(
    const Catalog::Opening& opening, ArchiveSpace::Reservation& reservation,
    OpeningHelpers* helpers) {
  QUIRE_ASSIGN_OR_RETURN(std::shared_ptr<ServedArchive> fresh,
                         OpenOne(opening, helpers));
  const std::shared_ptr<const Archive> contents = fresh->archive;
  // The path may name another archive by now, which takes more.
  if (absl::Status status = space_.Resize(reservation, contents);
      !status.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat(opening.argument().path,
                     ": was replaced by a larger archive while it was opened: ",
                     status.message()));
  }
  const std::shared_ptr<const WithdrawalInForce> withdrawal = fresh->withdrawal;
  QUIRE_RETURN_IF_ERROR(Publish(opening, std::move(fresh)));
  if (withdrawal->Get().has_documents()) {
    // They take memory, too.
    space_.Fit();
  }
  return contents;
}

void ArchiveLoader::Stop() {
  stop_ = true;
  catalog_.CancelOpenings();
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

absl::StatusOr<bool> ArchiveLoader::OpenWanted(
    const Catalog::Opening& opening) {
  if (stop_) {
    return absl::CancelledError("the server stops");
  }
  if (!opening.argument().url.empty()) {
    QUIRE_RETURN_IF_ERROR(CheckHasStore(opening.argument()));
    QUIRE_RETURN_IF_ERROR(PrepareCopy(opening, catalog_, *remote_));
  }
  QUIRE_ASSIGN_OR_RETURN(const ArchiveOutline outline,
                         ReadAndNoteOutline(opening));
  QUIRE_ASSIGN_OR_RETURN(std::optional<ArchiveSpace::Reservation> reservation,
                         space_.ReserveListed(outline));
  if (!reservation.has_value()) {
    return false;
  }
  // Other openings may have the same free memory.
  QUIRE_RETURN_IF_ERROR(
      OpenAlone(opening, *reservation, space_.FreeBytes() / kListedOpeningsMax)
          .status());
  return true;
}

ArchiveLoader::Outcome ArchiveLoader::OpenOnUse(const std::string& name) {
  std::optional<Catalog::Opening> opening =
      catalog_.Begin(name, Catalog::Purpose::kOpen);
  if (!opening.has_value()) {
    return {};
  }
  const absl::StatusOr<bool> is_open = OpenWanted(*opening);
  if (is_open.ok() && !*is_open) {
    opening->Wait();
    return {.is_waiting = true};
  }
  if (is_open.ok() || absl::IsCancelled(is_open.status())) {
    return {.is_open = is_open.ok()};
  }
  return {.reason = is_open.status(), .delay = opening->Fail()};
}

}  // namespace quire
