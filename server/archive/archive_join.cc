// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/archive_join.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/status_macros.h"
#include "server/archive/archive.h"
#include "server/archive/archive_writer.h"
#include "server/archive/fields/fields_builder.h"
#include "server/archive/files/archive_change.h"
#include "server/archive/files/archive_directory.h"
#include "server/archive/format/archive_format.h"
#include "server/archive/format/manifest.h"
#include "server/archive/format/member_count.h"

namespace quire {
namespace {

std::string FileOrNone(const std::string& hash) {
  return hash.empty() ? "none" : hash;
}

absl::Status CheckSameEncoding(const ArchiveDirectory& first,
                               const ArchiveDirectory& part) {
  const ArchiveInfo expected = first.manifest.Describe(0);
  const ArchiveInfo found = part.manifest.Describe(0);
  const auto check = [&](const char* what, const std::string& of_first,
                         const std::string& of_part, const char* advice) {
    return of_first == of_part
               ? absl::OkStatus()
               : absl::FailedPreconditionError(absl::StrCat(
                     part.path, ": ", what, " is ", of_part, ", expected ",
                     of_first, " as in ", first.path, "; ", advice));
  };
  constexpr char kBuildLike[] =
      "build it with quired build --like of the same archive as the others";
  QUIRE_RETURN_IF_ERROR(check("the codec", FormatCodecSpec(expected.codec),
                              FormatCodecSpec(found.codec), kBuildLike));
  QUIRE_RETURN_IF_ERROR(
      check("the block size", FormatByteSizeExact(expected.block_size_bytes),
            FormatByteSizeExact(found.block_size_bytes), kBuildLike));
  QUIRE_RETURN_IF_ERROR(
      check("the partition size",
            FormatByteSizeExact(expected.codec.partition_size_bytes),
            FormatByteSizeExact(found.codec.partition_size_bytes), kBuildLike));
  QUIRE_RETURN_IF_ERROR(
      check("the dictionary", FileOrNone(expected.dictionary_hash),
            FileOrNone(found.dictionary_hash),
            "build it with quired build --like of the same archive as the "
            "others; where quired redact changed it, join first, then redact"));
  return check("the symbol table", FileOrNone(expected.symbol_table_hash),
               FileOrNone(found.symbol_table_hash), kBuildLike);
}

// Adds the documents of `part` behind those of `manifest`.
void AddPart(const Manifest& part, Manifest& manifest) {
  manifest.block_size_bytes_max =
      std::max(manifest.block_size_bytes_max, part.block_size_bytes_max);
  manifest.slices_per_mib_max =
      std::max(manifest.slices_per_mib_max, part.slices_per_mib_max);
  manifest.next_segment_number =
      std::max(manifest.next_segment_number, part.next_segment_number);
  std::ranges::copy(part.segments, std::back_inserter(manifest.segments));
  manifest.unread_input_count += part.unread_input_count;
  std::ranges::copy(part.unread_inputs,
                    std::back_inserter(manifest.unread_inputs));
  MemberCount members(std::move(manifest.members));
  for (const MemberBlocks& added : part.members) {
    members.Add(added);
  }
  manifest.members = members.members();
  for (const FoundMembers& found : part.found_members) {
    AddFoundMembers(found, manifest.found_members);
  }
  manifest.has_recipes |= part.has_recipes;
}

// Returns the manifest of all parts.
absl::StatusOr<Manifest> JoinManifests(
    std::span<const ArchiveDirectory> parts) {
  Manifest manifest = parts.front().manifest;
  absl::flat_hash_map<uint32_t, const ArchiveDirectory*> owners;
  for (const ArchiveDirectory& part : parts) {
    QUIRE_RETURN_IF_ERROR(CheckSameEncoding(parts.front(), part));
    for (const ManifestSegment& segment : part.manifest.segments) {
      const auto [owner, is_new] = owners.emplace(segment.number, &part);
      if (!is_new) {
        return absl::FailedPreconditionError(absl::StrCat(
            part.path, ": has segment ", segment.number, ", and so has ",
            owner->second->path,
            ", expected a number in one part only; build one of them again "
            "with another --first-segment"));
      }
    }
    if (&part != &parts.front()) {
      AddPart(part.manifest, manifest);
    }
  }
  if (manifest.segments.size() > kSegmentCountMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the parts have ", manifest.segments.size(),
        " segments, and an archive at most ", kSegmentCountMax,
        "; build fewer or larger parts, with a larger --segment-size"));
  }
  manifest.writer = DefaultWriter();
  return manifest;
}

// Adds the fields of a part to those of the parts before it.
absl::Status AddFields(
    const Archive& part,
    std::vector<std::pair<FieldColumn, std::string>>& fields) {
  if (!part.info().unknown_part.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(part.path(), ": ", part.info().unknown_part,
                     " that this program does not know: use a newer one"));
  }
  for (const FieldColumn& column : part.fields()) {
    const auto known =
        std::ranges::find_if(fields, [&column](const auto& field) {
          return field.first.name == column.name;
        });
    if (known != fields.end()) {
      QUIRE_RETURN_IF_ERROR(
          CheckSameType(known->first, column, known->second, part.path()));
    } else if (fields.size() == kFieldCountMax) {
      return absl::InvalidArgumentError(
          absl::StrCat(part.path(), ": the parts have more than ",
                       kFieldCountMax, " fields together"));
    } else {
      fields.emplace_back(column, part.path());
    }
  }
  return absl::OkStatus();
}

std::string FirstOutOfOrder(std::span<const ArchiveDirectory> parts) {
  uint32_t last = 0;
  for (const ArchiveDirectory& part : parts) {
    for (const ManifestSegment& segment : part.manifest.segments) {
      if (segment.number < last) {
        return part.path;
      }
      last = segment.number;
    }
  }
  return "";
}

}  // namespace

absl::StatusOr<JoinSummary> JoinArchives(const std::string& path,
                                         std::span<const std::string> parts,
                                         bool replace,
                                         const std::atomic<bool>* cancel) {
  std::vector<ArchiveDirectory> directories;
  for (const std::string& part : parts) {
    QUIRE_ASSIGN_OR_RETURN(directories.emplace_back(), OpenKnownArchive(part));
  }
  QUIRE_ASSIGN_OR_RETURN(Manifest manifest, JoinManifests(directories));
  QUIRE_ASSIGN_OR_RETURN(
      ArchiveChange change,
      ArchiveChange::BeginCopy(directories.front(), path, replace, cancel));
  // Fields of the parts so far, and the first part that has each.
  std::vector<std::pair<FieldColumn, std::string>> fields;
  for (const ArchiveDirectory& part : directories) {
    QUIRE_ASSIGN_OR_RETURN(
        const std::shared_ptr<const Archive> archive,
        Archive::OpenAs(part.path, part.manifest, {.cancel = cancel}));
    QUIRE_RETURN_IF_ERROR(AddFields(*archive, fields));
    QUIRE_RETURN_IF_ERROR(change.AddFiles(part, cancel));
  }
  QUIRE_ASSIGN_OR_RETURN(
      const ArchiveChange::Committed committed,
      change.Commit(std::move(manifest), EarlierStates::kKeep));
  return JoinSummary{
      .info = committed.manifest.Describe(committed.file_size_bytes),
      .out_of_order = FirstOutOfOrder(directories)};
}

}  // namespace quire
