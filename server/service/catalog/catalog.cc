// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/catalog/catalog.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "server/archive/files/file_io.h"
#include "server/service/base/service_error.h"

namespace quire {
namespace {

// Of an error message.
constexpr size_t kListedNamesMax = 5;
// Most archives are opened in less.
constexpr absl::Duration kOpeningRetryDelay = absl::Milliseconds(500);

uint64_t NextSourceId() {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

std::vector<std::shared_ptr<const FilePlacement>> PlaceSegments(
    const Archive& archive) {
  std::vector<std::shared_ptr<const FilePlacement>> placements;
  for (uint32_t i = 0; i < archive.info().segment_count; ++i) {
    placements.push_back(archive.SegmentBlockCount(i) == 0
                             ? nullptr
                             : std::make_shared<const FilePlacement>(
                                   PlaceFile(archive.BlockExtent({i, 0}).fd)));
  }
  return placements;
}

bool IsArchiveName(absl::string_view name) {
  if (name.empty() || name.size() > kArchiveNameSizeMax) {
    return false;
  }
  for (const char c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '.' &&
        c != '_' && c != '-') {
      return false;
    }
  }
  return true;
}

// "docs, web and 3 more".
std::string ListNames(const ArchiveNames& all) {
  std::string names;
  size_t count = 0;
  for (const std::string& name : all) {
    if (count == kListedNamesMax) {
      return absl::StrCat(names, " and ", all.size() - count, " more");
    }
    absl::StrAppend(&names, count++ == 0 ? "" : ", ", name);
  }
  return names.empty() ? "none at all" : names;
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

absl::StatusOr<ArchiveArgument> ParseArchiveArgument(absl::string_view text) {
  ArchiveArgument argument;
  const size_t equals = text.find('=');
  // A path may hold '=' too: what stands before it is a name only if it looks
  // like one.
  if (equals != absl::string_view::npos &&
      !absl::StrContains(text.substr(0, equals), '/')) {
    argument.name = std::string(text.substr(0, equals));
    argument.path = std::string(text.substr(equals + 1));
  } else {
    argument.path = std::string(text);
    absl::string_view stem = text;
    while (absl::ConsumeSuffix(&stem, "/")) {
    }
    stem = stem.substr(stem.rfind('/') + 1);
    absl::ConsumeSuffix(&stem, ".quire");
    argument.name = std::string(stem);
  }
  if (argument.path.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", text, "\" names no archive; write PATH or ", "NAME=PATH"));
  }
  if (!IsArchiveName(argument.name)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", argument.name, "\" cannot be an archive's name: use 1 to ",
        kArchiveNameSizeMax,
        " letters, digits, dots, underscores and dashes, as in ",
        "NAME=", argument.path));
  }
  return argument;
}

absl::StatusOr<std::vector<ArchiveArgument>> FindArchives(
    const std::string& directory) {
  namespace fs = std::filesystem;
  std::vector<ArchiveArgument> found;
  std::error_code error;
  fs::directory_iterator entry(directory, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const fs::path& path = entry->path();
    const std::string file_name = path.filename().string();
    // What cannot be looked at is left to those who open it, if it looks like
    // an archive.
    std::error_code ignored;
    if (absl::StartsWith(file_name, ".") ||
        absl::EndsWith(file_name, ".partial") ||
        !entry->is_directory(ignored) ||
        (path.extension() != ".quire" &&
         !fs::exists(path / "MANIFEST", ignored))) {
      continue;
    }
    absl::StatusOr<ArchiveArgument> argument =
        ParseArchiveArgument(path.string());
    if (!argument.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path.string(), ": ", argument.status().message()));
    }
    found.push_back(*std::move(argument));
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
  return found;
}

absl::Status CheckNamesDiffer(const std::vector<ArchiveArgument>& arguments) {
  std::map<absl::string_view, absl::string_view> paths;
  for (const ArchiveArgument& argument : arguments) {
    const auto [other, is_new] = paths.emplace(argument.name, argument.path);
    if (!is_new) {
      return absl::InvalidArgumentError(absl::StrCat(
          "two archives are named \"", argument.name, "\", ", other->second,
          " and ", argument.path, "; name them apart with NAME=PATH"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<ServedArchive>> OpenServedArchive(
    const ArchiveArgument& argument, CacheForm cache_form,
    DamageReporter report_damage, const ArchiveOpenOptions& options,
    RangeDecode range_decode) {
  absl::StatusOr<std::shared_ptr<const Archive>> archive =
      Archive::Open(argument.path, options);
  if (!archive.ok()) {
    return archive.status();
  }
  auto served = std::make_shared<ServedArchive>();
  served->name = argument.name;
  served->archive = *archive;
  served->source_id = NextSourceId();
  served->stored_source_id = NextSourceId();
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
  served->decoder = MakeTextDecoder(
      *archive, log,
      cache_form == CacheForm::kFsst ? served->wire_table : nullptr,
      part_time_per_mib);
  served->range_decode = range_decode;
  served->stored_reader = MakeStoredReader(*archive, log);
  served->placements = PlaceSegments(**archive);
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

absl::Status NoSuchArchive(absl::string_view name, const ArchiveNames& others) {
  // It may be cut within a character, which no message could carry.
  const std::string quoted =
      absl::CHexEscape(name.substr(0, kArchiveNameSizeMax));
  return ServiceError(absl::StatusCode::kNotFound, v1::ARCHIVE_NOT_FOUND,
                      name.empty()
                          ? "the request names no archive"
                          : absl::StrCat("no archive \"", quoted,
                                         "\" here, but ", ListNames(others)),
                      {{"archive", quoted}});
}

ArchiveNames Catalog::Names() const {
  ArchiveNames names;
  for (const auto& [name, description] : *GetOpening()) {
    names.insert(name);
  }
  for (const auto& [name, served] : *Get()) {
    names.insert(name);
  }
  return names;
}

std::shared_ptr<const Catalog::ByName> Catalog::Get() const {
  MutexLock lock(&mutex_);
  return archives_;
}

std::shared_ptr<const Catalog::OpeningByName> Catalog::GetOpening() const {
  MutexLock lock(&mutex_);
  return opening_;
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
  // One that was counted with others stays so: a counter must not go back.
  const auto before = Get();
  const auto found = before->find(archive->name);
  archive->traffic = found != before->end() && found->second->traffic != nullptr
                         ? found->second->traffic
                         : TrafficOf(archive->name);
  auto opening = std::make_shared<OpeningByName>(*GetOpening());
  opening->erase(archive->name);
  auto archives = std::make_shared<ByName>(*Get());
  (*archives)[archive->name] = std::move(archive);
  Replace(std::move(archives), std::move(opening));
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

void Catalog::Replace(std::shared_ptr<const ByName> archives,
                      std::shared_ptr<const OpeningByName> opening) {
  MutexLock lock(&mutex_);
  archives_.swap(archives);
  opening_.swap(opening);
  // The old snapshots, now the parameters, are let go after the lock.
}

absl::StatusOr<std::shared_ptr<const ServedArchive>> Catalog::Find(
    absl::string_view name) const {
  const std::string key(name);
  bool is_opening = false;
  {
    // Looked up under the lock: to hold the snapshot meanwhile would cost each
    // call two more changes to a count that all of them share.
    MutexLock lock(&mutex_);
    if (const auto found = archives_->find(key); found != archives_->end()) {
      return found->second;
    }
    is_opening = opening_->contains(key);
  }
  if (is_opening) {
    return StillOpening(key);
  }
  return NoSuchArchive(name, Names());
}

}  // namespace quire
