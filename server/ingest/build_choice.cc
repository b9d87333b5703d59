// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/build_choice.h"

#include <algorithm>

#include "codecs/base/byte_size.h"

namespace quire {
namespace {

constexpr ObjectiveSettings kSpeedSettings = {
    .codec = {.id = CodecId::kRlz, .level = 1},
    .block_size_bytes = 64 * kKiB,
    .reorder = ReorderMode::kOff,
    .inflate = false,
    .dictionary_size_bytes_max = 64 * kMiB,
    .worth_bits_min = 8,
    .reorder_gain_min = 0.05};
constexpr ObjectiveSettings kBalancedSettings = {
    .codec = {.id = CodecId::kRlz, .level = 2},
    .block_size_bytes = 64 * kKiB,
    .reorder = ReorderMode::kAuto,
    .inflate = true,
    .dictionary_size_bytes_max = 64 * kMiB,
    .worth_bits_min = 4,
    .reorder_gain_min = 0.02};
constexpr ObjectiveSettings kArchiveSettings = {
    .codec = {.id = CodecId::kRlz, .level = 3},
    .block_size_bytes = 64 * kKiB,
    .reorder = ReorderMode::kAuto,
    .inflate = true,
    .dictionary_size_bytes_max = 256 * kMiB,
    .worth_bits_min = 3,
    .reorder_gain_min = 0.005,
    .tries_moved_text = true};

}  // namespace

absl::string_view ReorderModeName(ReorderMode mode) {
  switch (mode) {
    case ReorderMode::kOff:
      return "off";
    case ReorderMode::kAuto:
      return "auto";
    case ReorderMode::kDuplicates:
      return "dedup";
    case ReorderMode::kFull:
      return "full";
  }
  return "";
}

absl::string_view ObjectiveName(AutoObjective objective) {
  switch (objective) {
    case AutoObjective::kSpeed:
      return "speed";
    case AutoObjective::kBalanced:
      return "balanced";
    case AutoObjective::kArchive:
      return "archive";
  }
  return "";
}

std::optional<AutoObjective> ParseObjective(absl::string_view name) {
  const auto* const found =
      std::ranges::find(kAutoObjectives, name, &ObjectiveName);
  return found == kAutoObjectives.end() ? std::nullopt : std::optional(*found);
}

const ObjectiveSettings& SettingsOf(AutoObjective objective) {
  switch (objective) {
    case AutoObjective::kSpeed:
      return kSpeedSettings;
    case AutoObjective::kBalanced:
      return kBalancedSettings;
    case AutoObjective::kArchive:
      break;
  }
  return kArchiveSettings;
}

}  // namespace quire
