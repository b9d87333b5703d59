// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/catalog/served_archive.h"

#include <atomic>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/printable_text.h"
#include "server/archive/segment_reader.h"
#include "server/service/base/service_error.h"
#include "server/service/catalog/shared_parts.h"

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
    placements.push_back(std::make_shared<const FilePlacement>(
        place_file(archive.ReaderOf(i).fd())));
  }
  return placements;
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

absl::StatusOr<std::shared_ptr<ServedArchive>> OpenServedArchive(
    const ArchiveArgument& argument,
    std::shared_ptr<DecodeWorkspaces> workspaces,
    std::shared_ptr<WireEncoders> encoders, DamageReporter report_damage,
    ArchiveOpenOptions options, const ServedArchive* previous,
    const FilePlacer& place_file) {
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
  served->stored_reader = MakeStoredReader(*archive, log);
  served->placements = PlaceSegments(**archive, previous, place_file);
  served->description = DescribeArchive(argument.name, (*archive)->info(),
                                        v1::ARCHIVE_STATE_OPEN);
  return served;
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

}  // namespace quire
