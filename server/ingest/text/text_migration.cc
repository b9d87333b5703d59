// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/text/text_migration.h"

#include <algorithm>
#include <utility>

#include "codecs/base/checksum.h"
#include "codecs/base/status_macros.h"
#include "codecs/reorder/super_features.h"

namespace quire {
namespace {

// Memory of a unit while clusters are found: its offset, its checksum and its
// part of ChunkClusters. The last is an upper bound for a few units.
constexpr uint64_t kUnitMemoryBytes = 57;
constexpr uint64_t kUnitsMemoryBytes = 80 << 10;
// Memory of a unit while units are written: its offset, its checksum, and its
// position in the order and in a window.
constexpr uint64_t kUnitWriteBytes = 24;

// Size of a write.
constexpr size_t kPieceSizeBytes = 1 << 20;

absl::Status TextChanged() {
  return absl::DataLossError(
      "the text to be stored differs from the text written to its file; check "
      "the device, and build the archive again");
}

uint32_t ChecksumOfUnit(ByteView text) {
  return static_cast<uint32_t>(Checksum64(text));
}

}  // namespace

uint64_t TextMigration::SizeOf(size_t unit) const {
  const uint64_t end = unit + 1 < input_.units.size()
                           ? input_.units[unit + 1]
                           : input_.text.size_bytes();
  return end - input_.units[unit];
}

absl::Status TextMigration::ReadUnit(size_t unit,
                                     std::vector<uint8_t>& text) const {
  text.resize(SizeOf(unit));
  return input_.text.ReadAt(input_.units[unit], text);
}

uint64_t TextMigration::MemoryBytesMax(size_t unit_count, size_t run_count) {
  return unit_count * kUnitMemoryBytes + run_count * sizeof(StoredRun) +
         kUnitsMemoryBytes;
}

absl::Status TextMigration::FindClusters(size_t run_count) {
  const size_t unit_count = input_.units.size();
  QUIRE_RETURN_IF_ERROR(Hold(MemoryBytesMax(unit_count, run_count)));
  std::vector<uint8_t> text;
  Checksummer64 checksum;
  checksums_.reserve(unit_count);
  for (size_t i = 0; i < unit_count; ++i) {
    QUIRE_RETURN_IF_ERROR(ReadUnit(i, text));
    checksum.Add(text);
    checksums_.push_back(ChecksumOfUnit(text));
    clusters_.Add(SuperFeaturesOf(text));
  }
  if (checksum.Get() != input_.checksum) {
    return TextChanged();
  }
  QUIRE_RETURN_IF_ERROR(
      Hold(run_count * sizeof(StoredRun) + input_.units.MemoryBytes() +
           checksums_.size() * sizeof(uint32_t) + clusters_.MemoryBytes()));
  clusters_.EndAdding();
  return absl::OkStatus();
}

std::vector<uint32_t> TextMigration::ChooseOrder(
    const std::vector<StoredRun>& runs) {
  std::vector<uint32_t> leaders = clusters_.Leaders();
  if (input_.price.has_value()) {
    const std::vector<bool> moves =
        ChooseMoves({.offsets = input_.units,
                     .text_size_bytes = input_.text.size_bytes(),
                     .leaders = leaders,
                     .shared_counts = clusters_.SharedCounts()},
                    runs, *input_.price);
    for (uint32_t i = 0; i < leaders.size(); ++i) {
      leaders[i] = moves[i] ? leaders[i] : i;
    }
  }
  clusters_ = {};
  return OrderByLeader(std::move(leaders), JoinedUnits(runs));
}

std::vector<bool> TextMigration::JoinedUnits(
    const std::vector<StoredRun>& runs) const {
  const OffsetList& units = input_.units;
  std::vector<bool> is_joined(units.size(), false);
  for (size_t i = 1; i < units.size(); ++i) {
    is_joined[i] =
        SizeOf(i) < kRunPairSizeBytesMin || units[i] < kRunPairSizeBytesMin;
  }
  for (const StoredRun& run : runs) {
    const uint64_t end = run.stored_offset + run.size_bytes;
    const auto join = [&](uint64_t from, uint64_t to) {
      for (size_t i = units.CountBelow(from); i < units.size() && units[i] < to;
           ++i) {
        is_joined[i] = true;
      }
    };
    join(run.stored_offset + 1,
         std::min(end, run.stored_offset + kRunPairSizeBytesMin));
    join(std::max(run.stored_offset + 1,
                  end - std::min(end, kRunPairSizeBytesMin - 1)),
         end);
  }
  return is_joined;
}

absl::Status TextMigration::ReadAscending(
    const std::vector<uint32_t>& units,
    const std::vector<uint64_t>& new_offsets, uint64_t window_offset,
    std::vector<uint8_t>& window) const {
  std::vector<uint8_t> gap;
  uint64_t read_end = input_.units[units.front()];
  for (const uint32_t i : units) {
    const uint64_t gap_size = input_.units[i] - read_end;
    if (gap_size > 0 && gap_size <= input_.seek_cost_bytes) {
      gap.resize(gap_size);
      QUIRE_RETURN_IF_ERROR(input_.text.ReadAt(read_end, gap));
    }
    const MutableByteView unit = MutableByteView(window).subspan(
        new_offsets[i] - window_offset, SizeOf(i));
    QUIRE_RETURN_IF_ERROR(input_.text.ReadAt(input_.units[i], unit));
    if (ChecksumOfUnit(unit) != checksums_[i]) {
      return TextChanged();
    }
    read_end = input_.units[i] + unit.size();
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<uint64_t>> TextMigration::WriteUnits(
    const std::vector<uint32_t>& order, uint64_t window_size_bytes,
    const std::function<absl::Status(ByteView)>& write) const {
  std::vector<uint64_t> new_offsets(order.size());
  std::vector<uint32_t> units;
  std::vector<uint8_t> window;
  window.reserve(window_size_bytes);
  uint64_t written_bytes = 0;
  for (size_t i = 0; i < order.size();) {
    uint64_t size = 0;
    units.clear();
    do {
      new_offsets[order[i]] = written_bytes + size;
      size += SizeOf(order[i]);
      units.push_back(order[i++]);
    } while (i < order.size() && size + SizeOf(order[i]) <= window_size_bytes);
    std::ranges::sort(units);
    window.resize(size);
    QUIRE_RETURN_IF_ERROR(
        ReadAscending(units, new_offsets, written_bytes, window));
    for (ByteView rest = window; !rest.empty();) {
      const ByteView piece = rest.first(std::min(rest.size(), kPieceSizeBytes));
      QUIRE_RETURN_IF_ERROR(write(piece));
      rest = rest.subspan(piece.size());
    }
    written_bytes += size;
  }
  return new_offsets;
}

uint64_t TextMigration::WindowSizeBytes(uint64_t table_bytes) const {
  const uint64_t held_bytes =
      input_.other_held_bytes + table_bytes + 2 * input_.seek_cost_bytes;
  return input_.seek_cost_bytes == 0 || held_bytes > input_.memory.limit_bytes()
             ? 0
             : std::min(input_.memory.limit_bytes() - held_bytes,
                        input_.text.size_bytes());
}

absl::Status TextMigration::Run(
    std::vector<StoredRun>& runs,
    const std::function<absl::Status(ByteView)>& write) {
  QUIRE_RETURN_IF_ERROR(FindClusters(runs.size()));
  std::vector<uint32_t> order = ChooseOrder(runs);
  uint64_t table_bytes =
      runs.size() * sizeof(StoredRun) + order.size() * kUnitWriteBytes;
  const uint64_t window_size_bytes = WindowSizeBytes(table_bytes);
  if (window_size_bytes > 0) {
    QUIRE_RETURN_IF_ERROR(
        Hold(table_bytes + window_size_bytes + input_.seek_cost_bytes));
  }
  QUIRE_ASSIGN_OR_RETURN(const std::vector<uint64_t> new_offsets,
                         WriteUnits(order, window_size_bytes, write));
  std::vector<uint32_t>().swap(order);
  std::vector<uint32_t>().swap(checksums_);
  table_bytes = input_.units.MemoryBytes() +
                new_offsets.size() * sizeof(uint64_t) +
                runs.size() * sizeof(StoredRun);
  RunList moved;
  for (const StoredRun& run : runs) {
    QUIRE_RETURN_IF_ERROR(Hold(table_bytes + moved.MemoryBytes()));
    uint64_t offset = run.stored_offset;
    const uint64_t end = offset + run.size_bytes;
    for (size_t i = UnitAt(offset); offset < end; ++i) {
      const uint64_t begin = input_.units[i];
      const uint64_t size = std::min(end, begin + SizeOf(i)) - offset;
      moved.Append(size, new_offsets[i] + (offset - begin));
      offset += size;
    }
  }
  runs = std::move(moved).Take();
  return absl::OkStatus();
}

}  // namespace quire
