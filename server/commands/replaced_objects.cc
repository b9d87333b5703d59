// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/commands/replaced_objects.h"

#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "server/archive/format/archive_format.h"
#include "server/archive/format/manifest.h"

namespace quire {
namespace {

constexpr char kRecordsStart[] = "replaced/";
constexpr char kPartsStart[] = "parts/";
constexpr size_t kFaultsMax = 10;

StoreAddress WithoutPart(StoreAddress address) {
  address.manifest_directory.clear();
  return address;
}

void AddFault(const absl::Status& status, ReplacedObjects::Report& report) {
  if (!status.ok()) {
    ++report.fault_count;
    if (report.faults.size() < kFaultsMax) {
      report.faults.push_back(status);
    }
  }
}

}  // namespace

ReplacedObjects::ReplacedObjects(BucketClient& client,
                                 const StoreAddress& address)
    : own_manifest_(
          absl::StrCat(address.manifest_directory, kManifestFileName)),
      writer_(client, WithoutPart(address)) {}

absl::StatusOr<std::set<std::string>> ReplacedObjects::NamesIn(
    absl::string_view manifest) {
  QUIRE_ASSIGN_OR_RETURN(const Manifest parsed,
                         ParseManifest(AsBytes(manifest)));
  Names names;
  for (const ManifestSegment& segment : parsed.segments) {
    names.insert(SegmentFileName(segment.number));
  }
  if (parsed.dictionary.has_value()) {
    names.insert(DictionaryFileName(parsed.dictionary->hash));
  }
  if (parsed.symbol_table.has_value()) {
    names.insert(SymbolTableFileName(parsed.symbol_table->hash));
  }
  return names;
}

absl::Status ReplacedObjects::Record(absl::string_view manifest,
                                     absl::Time now) {
  const std::string object = absl::StrCat(
      kRecordsStart,
      absl::FormatTime("%Y%m%dT%H%M%E6SZ", now, absl::UTCTimeZone()), "-",
      absl::StrFormat("%016x", Checksum64(AsBytes(manifest))));
  return writer_.Put(object, manifest, {}).status();
}

absl::StatusOr<ReplacedObjects::Names> ReplacedObjects::ReadNames(
    const std::string& object) {
  QUIRE_ASSIGN_OR_RETURN(const auto found, writer_.Find(object));
  const std::string url = writer_.address().UrlOf(object);
  if (!found.has_value()) {
    return absl::NotFoundError(absl::StrCat(url, ": is not there"));
  }
  if (found->size_bytes > kManifestFileSizeBytesMax) {
    return absl::DataLossError(absl::StrCat(url, ": has ", found->size_bytes,
                                            " bytes, expected a MANIFEST of at "
                                            "most ",
                                            kManifestFileSizeBytesMax));
  }
  QUIRE_ASSIGN_OR_RETURN(const std::string bytes,
                         writer_.ReadEnd(object, *found, found->size_bytes));
  absl::StatusOr<Names> names = NamesIn(bytes);
  return names.ok()
             ? std::move(names)
             : absl::Status(names.status().code(),
                            absl::StrCat(url, ": ", names.status().message()));
}

absl::StatusOr<std::map<std::string, std::string>>
ReplacedObjects::NamesOfParts() {
  std::map<std::string, std::string> all;
  QUIRE_ASSIGN_OR_RETURN(const std::vector<BucketWriter::Listed> listed,
                         writer_.List(kPartsStart));
  for (const BucketWriter::Listed& each : listed) {
    if (!absl::EndsWith(each.object, absl::StrCat("/", kManifestFileName))) {
      continue;
    }
    QUIRE_ASSIGN_OR_RETURN(const Names names, ReadNames(each.object));
    for (const std::string& name : names) {
      all.emplace(name, each.object);
    }
  }
  return all;
}

absl::StatusOr<ReplacedObjects::Report> ReplacedObjects::DeleteAfter(
    absl::Duration grace, absl::Time now) {
  Report report;
  QUIRE_ASSIGN_OR_RETURN(const std::vector<BucketWriter::Listed> records,
                         writer_.List(kRecordsStart));
  std::vector<BucketWriter::Listed> due;
  std::vector<BucketWriter::Listed> young;
  for (const BucketWriter::Listed& record : records) {
    if (now - record.last_modified < grace) {
      young.push_back(record);
    } else {
      due.push_back(record);
    }
  }
  if (due.empty()) {
    return report;
  }
  Names others;
  for (const BucketWriter::Listed& record : young) {
    QUIRE_ASSIGN_OR_RETURN(Names names, ReadNames(record.object));
    others.merge(names);
  }
  QUIRE_ASSIGN_OR_RETURN(const auto parts, NamesOfParts());
  for (const BucketWriter::Listed& record : due) {
    const absl::Status status = DeleteOf(record, others, parts, report);
    if (absl::IsCancelled(status)) {
      return status;
    }
    AddFault(status, report);
  }
  return report;
}

absl::Status ReplacedObjects::DeleteOf(
    const BucketWriter::Listed& record, const Names& others,
    const std::map<std::string, std::string>& parts, Report& report) {
  QUIRE_ASSIGN_OR_RETURN(const Names names, ReadNames(record.object));
  // Last of what is read: it may have changed meanwhile.
  Names in_force;
  for (const std::string& object :
       std::set<std::string>{own_manifest_, kManifestFileName}) {
    absl::StatusOr<Names> read = ReadNames(object);
    if (absl::IsNotFound(read.status()) && object != own_manifest_) {
      // Parts that were not joined yet.
      continue;
    }
    QUIRE_RETURN_IF_ERROR(read.status());
    in_force.merge(*read);
  }
  bool is_done = true;
  for (const std::string& name : names) {
    if (in_force.contains(name) || others.contains(name)) {
      continue;
    }
    if (const auto part = parts.find(name); part != parts.end()) {
      ++report.part_count;
      report.part = part->second;
      is_done = false;
      continue;
    }
    const absl::Status status = DeleteOld(name, record.last_modified, report);
    if (absl::IsCancelled(status)) {
      return status;
    }
    is_done = is_done && status.ok();
    AddFault(status, report);
  }
  return is_done ? writer_.Delete(record.object) : absl::OkStatus();
}

absl::Status ReplacedObjects::DeleteOld(const std::string& object,
                                        absl::Time record_time,
                                        Report& report) {
  QUIRE_ASSIGN_OR_RETURN(const auto found, writer_.Find(object));
  if (!found.has_value()) {
    // An earlier call deleted it, and failed later.
    return absl::OkStatus();
  }
  const std::optional<absl::Time> time = ParseHttpTime(found->last_modified);
  if (!time.has_value()) {
    return absl::UnavailableError(
        absl::StrCat(writer_.address().UrlOf(object),
                     ": the store answered Last-Modified \"",
                     PrintableText(found->last_modified),
                     "\", expected a time: it is not deleted"));
  }
  if (*time > record_time) {
    // Another build has put it since.
    return absl::OkStatus();
  }
  QUIRE_RETURN_IF_ERROR(writer_.Delete(object));
  ++report.deleted_count;
  report.deleted_size_bytes += found->size_bytes;
  return absl::OkStatus();
}

}  // namespace quire
