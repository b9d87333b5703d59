// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/catalog/catalog.h"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

#include "codecs/base/archive_name.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "server/archive/files/file_io.h"
#include "server/service/base/service_error.h"
#include "server/service/catalog/listed_archive.h"
#include "server/storage/remote/store_address.h"

namespace quire {
namespace {

constexpr size_t kUuidSizeShownMax = 40;

uint64_t NextOpeningId() {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

// Those of segments that `previous` has, too, are taken from it.
std::vector<std::shared_ptr<const FilePlacement>> PlaceSegments(
    const Archive& archive, const ServedArchive* previous,
    const FilePlacer& place_file) {
  absl::flat_hash_map<uint64_t, std::shared_ptr<const FilePlacement>> known;
  if (previous != nullptr) {
    for (uint32_t i = 0; i < previous->placements.size(); ++i) {
      known.emplace(previous->archive->OpenedSegmentId(i),
                    previous->placements[i]);
    }
  }
  std::vector<std::shared_ptr<const FilePlacement>> placements;
  for (uint32_t i = 0; i < archive.info().segment_count; ++i) {
    if (const auto found = known.find(archive.OpenedSegmentId(i));
        found != known.end()) {
      placements.push_back(found->second);
      continue;
    }
    placements.push_back(archive.SegmentBlockCount(i) == 0
                             ? nullptr
                             : std::make_shared<const FilePlacement>(
                                   place_file(archive.BlockExtent({i, 0}).fd)));
  }
  return placements;
}

// Returns ", but docs, web and others"; empty if there are no names.
std::string ListNames(const NameSample& sample) {
  return sample.names.empty()
             ? ""
             : absl::StrCat(", but ", absl::StrJoin(sample.names, ", "),
                            sample.has_more ? " and others" : "");
}

}  // namespace

v1::ArchiveDescription DescribeArchive(const std::string& name,
                                       const ArchiveInfo& info,
                                       v1::ArchiveState state) {
  v1::ArchiveDescription description;
  description.set_name(name);
  description.set_state(state);
  description.set_uuid(info.uuid);
  description.set_size_bytes(info.size_bytes);
  description.set_stored_size_bytes(info.stored_size_bytes);
  description.set_document_count(info.document_count);
  description.set_block_count(info.block_count);
  description.set_segment_count(info.segment_count);
  description.set_block_size_bytes(info.block_size_bytes);
  if (const CodecInfo* codec = FindCodec(info.codec.id); codec != nullptr) {
    description.set_codec(codec->name.data(), codec->name.size());
  }
  if (!info.dictionary_hash.empty()) {
    description.set_dictionary_hash(info.dictionary_hash);
    description.set_dictionary_size_bytes(info.dictionary_size_bytes);
  }
  if (!info.symbol_table_hash.empty()) {
    description.set_symbol_table_hash(info.symbol_table_hash);
  }
  return description;
}

void AddHistory(const ArchiveInfo& info, v1::ArchiveDescription& description) {
  const auto add = [](const std::vector<ArchiveState>& states, auto& added) {
    for (const ArchiveState& state : states) {
      v1::EarlierState& to = *added.Add();
      to.set_uuid(state.uuid);
      to.set_size_bytes(state.size_bytes);
      to.set_document_count(state.document_count);
    }
  };
  add(info.history, *description.mutable_history());
  add(info.redacted_states, *description.mutable_redacted_states());
}

namespace {

// Returns the archive at a path, which may contain '='.
ArchiveArgument NamedByPath(absl::string_view path) {
  absl::string_view stem = path;
  while (absl::ConsumeSuffix(&stem, "/")) {
  }
  stem = stem.substr(stem.rfind('/') + 1);
  absl::ConsumeSuffix(&stem, ".quire");
  return {.name = std::string(stem), .path = std::string(path)};
}

absl::Status CheckArchiveName(const ArchiveArgument& argument) {
  return IsArchiveName(argument.name)
             ? absl::OkStatus()
             : absl::InvalidArgumentError(absl::StrCat(
                   "\"", argument.name,
                   "\" cannot be an archive's name: use 1 to ",
                   kArchiveNameSizeMax,
                   " letters, digits, dots, underscores and dashes, not \".\" "
                   "or \"..\", as in NAME=",
                   argument.path));
}

}  // namespace

absl::StatusOr<ArchiveArgument> ParseArchiveArgument(absl::string_view text) {
  ArchiveArgument argument;
  const size_t equals = text.find('=');
  // A path may contain '=', too: the text before it is a name only if it looks
  // like one.
  if (equals != absl::string_view::npos &&
      !absl::StrContains(text.substr(0, equals), '/')) {
    argument.name = std::string(text.substr(0, equals));
    argument.path = std::string(text.substr(equals + 1));
  } else {
    argument = NamedByPath(text);
  }
  if (argument.path.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", text, "\" names no archive; write PATH or ", "NAME=PATH"));
  }
  QUIRE_RETURN_IF_ERROR(CheckArchiveName(argument));
  if (IsStoreUrl(argument.path)) {
    argument.url = std::move(argument.path);
    argument.path.clear();
  }
  return argument;
}

absl::StatusOr<DirectoryArchives> FindArchives(const std::string& directory) {
  namespace fs = std::filesystem;
  struct stat attributes = {};
  if (stat(directory.c_str(), &attributes) != 0) {
    return ErrnoStatus(errno, directory, "list");
  }
  std::vector<ArchiveArgument> found;
  std::error_code error;
  fs::directory_iterator entry(directory, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const fs::path& path = entry->path();
    const std::string file_name = path.filename().string();
    // An entry that looks like an archive and cannot be examined is left to the
    // code that opens it.
    std::error_code ignored;
    if (absl::StartsWith(file_name, ".") ||
        absl::EndsWith(file_name, ".partial") ||
        !entry->is_directory(ignored) ||
        (path.extension() != ".quire" &&
         !fs::exists(path / "MANIFEST", ignored))) {
      continue;
    }
    ArchiveArgument argument = NamedByPath(path.string());
    if (const absl::Status status = CheckArchiveName(argument); !status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path.string(), ": ", status.message()));
    }
    found.push_back(std::move(argument));
  }
  if (error) {
    return ErrnoStatus(error.value(), directory, "list");
  }
  std::sort(found.begin(), found.end(),
            [](const ArchiveArgument& a, const ArchiveArgument& b) {
              return a.name < b.name;
            });
  if (const absl::Status status = CheckNamesDiffer(found); !status.ok()) {
    return status;
  }
  return DirectoryArchives{.archives = std::move(found),
                           .device = attributes.st_dev};
}

absl::Status CheckNamesDiffer(const std::vector<ArchiveArgument>& arguments) {
  std::map<absl::string_view, absl::string_view> paths;
  for (const ArchiveArgument& argument : arguments) {
    const absl::string_view where =
        argument.url.empty() ? argument.path : argument.url;
    const auto [other, is_new] = paths.emplace(argument.name, where);
    if (!is_new) {
      return absl::InvalidArgumentError(absl::StrCat(
          "two archives are named \"", argument.name, "\", ", other->second,
          " and ", where, "; name them apart with NAME=PATH"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<ServedArchive>> OpenServedArchive(
    const ArchiveArgument& argument,
    std::shared_ptr<DecodeWorkspaces> workspaces,
    std::shared_ptr<WireEncoders> encoders, DamageReporter report_damage,
    ArchiveOpenOptions options, RangeDecode range_decode,
    const ServedArchive* previous, const FilePlacer& place_file) {
  if (previous != nullptr) {
    options.shared = previous->archive.get();
  }
  absl::StatusOr<std::shared_ptr<const Archive>> archive =
      Archive::Open(argument.path, options);
  if (!archive.ok()) {
    return archive.status();
  }
  auto served = std::make_shared<ServedArchive>();
  served->name = argument.name;
  served->neighbourhood = NeighbourhoodOf(argument);
  served->archive = *archive;
  served->opening_id = NextOpeningId();
  served->wire_encoders = std::move(encoders);
  if (!(*archive)->symbol_table().empty()) {
    const auto table = SymbolTable::Parse((*archive)->symbol_table());
    if (!table.ok()) {
      return table.status();
    }
    served->wire_table = std::make_shared<const WireTable>(*table);
  }
  const auto log =
      std::make_shared<DamageLog>(argument.name, std::move(report_damage));
  const auto part_time_per_mib = std::make_shared<MovingAverage>();
  served->part_time_per_mib = part_time_per_mib;
  served->decoder =
      MakeTextDecoder(*archive, log, std::move(workspaces), part_time_per_mib);
  served->range_decode = range_decode;
  served->stored_reader = MakeStoredReader(*archive, log);
  served->placements = PlaceSegments(**archive, previous, place_file);
  served->description = DescribeArchive(argument.name, (*archive)->info(),
                                        v1::ARCHIVE_STATE_OPEN);
  return served;
}

absl::Status StillOpening(const std::string& name) {
  return ServiceError(
      absl::StatusCode::kUnavailable, v1::ARCHIVE_OPENING,
      absl::StrCat("archive \"", name, "\" is being opened; try again soon"),
      {{"archive", name}}, kOpeningRetryDelay);
}

absl::StatusOr<ArchiveView> FindState(const Archive& archive,
                                      absl::string_view name,
                                      absl::string_view uuid,
                                      absl::string_view field) {
  const std::optional<ArchiveView> view = archive.FindState(uuid);
  if (view.has_value()) {
    return *view;
  }
  return ServiceError(
      absl::StatusCode::kFailedPrecondition, v1::ARCHIVE_STATE_UNKNOWN,
      absl::StrCat(field, ": archive \"", name, "\" has the uuid ",
                   archive.info().uuid, ", and ",
                   QuotedText(uuid, kUuidSizeShownMax),
                   " is none of its earlier ones; it may have been replaced"),
      {{"archive", std::string(name)}});
}

absl::Status NoSuchArchive(absl::string_view name, const NameSample& others) {
  // The name may be truncated within a character, which is not valid UTF-8.
  const std::string quoted =
      absl::CHexEscape(name.substr(0, kArchiveNameSizeMax));
  return ServiceError(absl::StatusCode::kNotFound, v1::ARCHIVE_NOT_FOUND,
                      name.empty() ? "the request names no archive"
                                   : absl::StrCat("no archive \"", quoted,
                                                  "\" here", ListNames(others)),
                      {{"archive", quoted}});
}

size_t Catalog::size() const {
  const Snapshot snapshot = GetAll();
  return snapshot.open->size() + snapshot.opening->size();
}

bool Catalog::Contains(absl::string_view name) const {
  const Snapshot snapshot = GetAll();
  return snapshot.open->contains(name) || snapshot.opening->contains(name) ||
         snapshot.listed->contains(name);
}

NameSample Catalog::SampleNames(
    absl::FunctionRef<bool(const std::string&)> is_shown) const {
  const Snapshot snapshot = GetAll();
  auto open = snapshot.open->begin();
  auto opening = snapshot.opening->begin();
  auto listed = snapshot.listed->begin();
  NameSample sample;
  for (size_t considered = 0;; ++considered) {
    const std::string* first = nullptr;
    const auto consider = [&](const auto& map, const auto& entry) {
      if (entry != map.end() && (first == nullptr || entry->first < *first)) {
        first = &entry->first;
      }
    };
    consider(*snapshot.open, open);
    consider(*snapshot.opening, opening);
    consider(*snapshot.listed, listed);
    if (first == nullptr) {
      return sample;
    }
    const std::string& name = *first;
    const bool is_full = sample.names.size() == kSampledNamesMax;
    if (considered == kConsideredNamesMax || (is_full && is_shown(name))) {
      sample.has_more = true;
      return sample;
    }
    if (!is_full && is_shown(name)) {
      sample.names.push_back(name);
    }
    // A listed archive may also be open.
    const auto pass = [&](const auto& map, auto& entry) {
      if (entry != map.end() && entry->first == name) {
        ++entry;
      }
    };
    pass(*snapshot.open, open);
    pass(*snapshot.opening, opening);
    pass(*snapshot.listed, listed);
  }
}

Catalog::Snapshot Catalog::GetAll() const {
  MutexLock lock(&mutex_);
  return {.open = archives_, .opening = opening_, .listed = listed_};
}

std::shared_ptr<const Catalog::ByName> Catalog::Get() const {
  MutexLock lock(&mutex_);
  return archives_;
}

std::shared_ptr<const Catalog::OpeningByName> Catalog::GetOpening() const {
  MutexLock lock(&mutex_);
  return opening_;
}

std::shared_ptr<const Catalog::ListedByName> Catalog::GetListed() const {
  MutexLock lock(&mutex_);
  return listed_;
}

void Catalog::SetListed(ListedByName listed) {
  auto fresh = std::make_shared<const ListedByName>(std::move(listed));
  MutexLock write_lock(&write_mutex_);
  MutexLock lock(&mutex_);
  listed_.swap(fresh);
}

Catalog::TrafficByName Catalog::GetTraffic() const {
  MutexLock write_lock(&write_mutex_);
  return traffic_;
}

std::shared_ptr<ArchiveTraffic> Catalog::TrafficOf(const std::string& name) {
  const auto found = traffic_.find(name);
  if (found != traffic_.end()) {
    return found->second;
  }
  const bool has_space =
      traffic_.size() - traffic_.count(kOtherArchives) < kTrafficArchivesMax;
  std::shared_ptr<ArchiveTraffic>& traffic =
      traffic_[has_space ? name : kOtherArchives];
  if (traffic == nullptr) {
    traffic = std::make_shared<ArchiveTraffic>();
  }
  return traffic;
}

void Catalog::Publish(std::shared_ptr<ServedArchive> archive) {
  MutexLock write_lock(&write_mutex_);
  // An archive counted among the others stays there: counters never decrease.
  const auto before = Get();
  const auto found = before->find(archive->name);
  archive->traffic = found != before->end() && found->second->traffic != nullptr
                         ? found->second->traffic
                         : TrafficOf(archive->name);
  auto opening = std::make_shared<OpeningByName>(*GetOpening());
  opening->erase(archive->name);
  const std::string name = archive->name;
  auto archives = std::make_shared<ByName>(*Get());
  (*archives)[name] = std::move(archive);
  Replace(std::move(archives), std::move(opening));
  // Only now: its withdrawn documents are known wherever it is seen.
  if (const auto unopened = GetUnopened(); unopened->contains(name)) {
    auto others = std::make_shared<UnopenedByName>(*unopened);
    others->erase(name);
    SetUnopened(std::move(others));
  }
}

void Catalog::Remove(const std::string& name) {
  MutexLock write_lock(&write_mutex_);
  auto opening = std::make_shared<OpeningByName>(*GetOpening());
  opening->erase(name);
  auto archives = std::make_shared<ByName>(*Get());
  archives->erase(name);
  traffic_.erase(name);
  Replace(std::move(archives), std::move(opening));
}

void Catalog::Close(const std::string& name) {
  MutexLock write_lock(&write_mutex_);
  auto archives = std::make_shared<ByName>(*Get());
  archives->erase(name);
  Replace(std::move(archives), GetOpening());
}

void Catalog::Replace(std::shared_ptr<const ByName> archives,
                      std::shared_ptr<const OpeningByName> opening) {
  MutexLock lock(&mutex_);
  archives_.swap(archives);
  opening_.swap(opening);
  // The old snapshots, now in the parameters, are released after the lock.
}

std::shared_ptr<const Catalog::UnopenedByName> Catalog::GetUnopened() const {
  MutexLock lock(&mutex_);
  return unopened_;
}

void Catalog::SetUnopened(std::shared_ptr<const UnopenedByName> unopened) {
  MutexLock lock(&mutex_);
  unopened_.swap(unopened);
}

void Catalog::NoteFormer(const std::string& name, const SharedParts& parts) {
  MutexLock lock(&former_mutex_);
  Former& former = former_[name];
  former.parts.Add(parts);
  former.may_withdraw = true;
}

void Catalog::MarkFormer(
    absl::FunctionRef<bool(const std::string& name)> withdraws) {
  MutexLock lock(&former_mutex_);
  for (auto& [name, former] : former_) {
    former.may_withdraw = withdraws(name);
  }
}

void Catalog::NoteRedacted(const SharedParts& parts) {
  MutexLock lock(&former_mutex_);
  redacted_.Add(parts);
}

void Catalog::NoteUnopened(const std::string& name, Unopened unopened) {
  MutexLock write_lock(&write_mutex_);
  auto all = std::make_shared<UnopenedByName>(*GetUnopened());
  (*all)[name] = std::make_shared<const Unopened>(std::move(unopened));
  SetUnopened(std::move(all));
}

void Catalog::MarkUnopened(const std::set<std::string>& withdrawing) {
  MutexLock write_lock(&write_mutex_);
  auto all = std::make_shared<UnopenedByName>(*GetUnopened());
  for (auto& [name, unopened] : *all) {
    auto marked = std::make_shared<Unopened>(*unopened);
    marked->may_withdraw = withdrawing.contains(name);
    unopened = std::move(marked);
  }
  SetUnopened(std::move(all));
}

void Catalog::ForgetUnopened(const std::string& name) {
  MutexLock write_lock(&write_mutex_);
  auto all = std::make_shared<UnopenedByName>(*GetUnopened());
  all->erase(name);
  SetUnopened(std::move(all));
}

bool Catalog::MayHaveWithdrawn(SharedPart part, absl::string_view hash) const {
  // In this order: contents that are opened in between are seen in both states.
  const auto unopened = GetUnopened();
  const auto listed = GetListed();
  const auto archives = Get();
  const auto has_it = [&](const ServedArchive& archive) {
    const v1::ArchiveDescription& description = archive.description;
    return hash == (part == SharedPart::kDictionary
                        ? description.dictionary_hash()
                        : description.symbol_table_hash());
  };
  // Unless `has` says it, an archive may have the parts of those next to it, or
  // any, if that is not known for a moment only. An open archive of the name
  // that has the part decides about it.
  const auto may_have_it = [&](const std::string& name, std::optional<bool> has,
                               bool is_awaited, auto neighbourhood) {
    if (has == false) {
      return false;
    }
    const auto open = archives->find(name);
    if (open != archives->end() && has_it(*open->second)) {
      return false;
    }
    return has == true || is_awaited ||
           std::ranges::any_of(*archives,
                               [&, place = neighbourhood()](const auto& entry) {
                                 return entry.second->neighbourhood == place &&
                                        has_it(*entry.second);
                               });
  };
  {
    // After them: contents are noted before they cease to be among them.
    MutexLock lock(&former_mutex_);
    const auto may_be_of = [&](const auto& entry) {
      const auto& [name, former] = entry;
      return former.may_withdraw &&
             may_have_it(name, former.parts.Has(part, hash),
                         /*is_awaited=*/false, [] { return std::string(); });
    };
    if (redacted_.Has(part, hash) == true ||
        std::ranges::any_of(former_, may_be_of)) {
      return true;
    }
  }
  return std::ranges::any_of(*archives,
                             [&](const auto& entry) {
                               return has_it(*entry.second) &&
                                      entry.second->withdrawal->Get() !=
                                          nullptr;
                             }) ||
         std::ranges::any_of(
             *unopened,
             [&](const auto& entry) {
               const Unopened& archive = *entry.second;
               return archive.may_withdraw &&
                      may_have_it(entry.first, archive.parts.Has(part, hash),
                                  archive.is_awaited,
                                  [&] { return archive.neighbourhood; });
             }) ||
         std::ranges::any_of(*listed, [&](const auto& entry) {
           const ListedArchive& archive = *entry.second;
           return archive.may_withdraw() &&
                  may_have_it(entry.first, archive.HasPart(part, hash),
                              archive.is_wanted(), [&] {
                                return NeighbourhoodOf(archive.argument());
                              });
         });
}

absl::StatusOr<std::shared_ptr<const ServedArchive>> Catalog::Find(
    absl::string_view name) const {
  const std::string key(name);
  std::shared_ptr<const ServedArchive> open;
  std::shared_ptr<ListedArchive> closed;
  bool is_opening = false;
  {
    // Look up under the lock: holding the snapshot would cost each call two
    // more changes of a reference count that all calls share.
    MutexLock lock(&mutex_);
    if (const auto found = archives_->find(key); found != archives_->end()) {
      open = found->second;
    } else if (const auto listed = listed_->find(key);
               listed != listed_->end()) {
      closed = listed->second;
    } else {
      is_opening = opening_->contains(key);
    }
  }
  if (open != nullptr) {
    if (open->listed != nullptr) {
      open->listed->Touch(ListedArchive::Clock::now());
    }
    return open;
  }
  if (closed != nullptr) {
    return Demanded(closed);
  }
  if (is_opening) {
    return StillOpening(key);
  }
  return NoSuchArchive(
      name, SampleNames([](const std::string& /*name*/) { return true; }));
}

std::shared_ptr<const ServedArchive> Catalog::FindOpen(
    absl::string_view name) const {
  MutexLock lock(&mutex_);
  const auto found = archives_->find(name);
  return found == archives_->end() ? nullptr : found->second;
}

absl::Status Catalog::Await(const std::string& name) const {
  const absl::Status status = Find(name).status();
  return absl::IsUnavailable(status) ? status : StillOpening(name);
}

absl::Status Catalog::Demanded(
    const std::shared_ptr<ListedArchive>& listed) const {
  if (demand_ && listed->Want(ListedArchive::Clock::now())) {
    demand_(listed);
  }
  return NotOpenYet(*listed);
}

}  // namespace quire
