// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/model/drive_presets.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "server/storage/model/hard_disk_model.h"
#include "server/storage/model/solid_state_model.h"

namespace quire {
namespace {

constexpr double kMebibyte = 1 << 20;

std::unique_ptr<DriveModel> MakeWdRed() {
  return std::make_unique<HardDiskModel>(HardDiskOptions{});
}

std::unique_ptr<DriveModel> MakeWeakWdRed() {
  HardDiskOptions options;
  options.guard_ms = 1.0;
  return std::make_unique<HardDiskModel>(options);
}

std::unique_ptr<DriveModel> MakeWdRedWithPriorities() {
  HardDiskOptions options;
  options.priorities = true;
  return std::make_unique<HardDiskModel>(options);
}

// 7200 rpm, so the platter takes 4.17 of the 8.5 ms; the same rate everywhere.
std::unique_ptr<DriveModel> MakeTable1HardDisk() {
  HardDiskOptions options;
  options.geometry.turn_ms = 60'000.0 / 7'200;
  options.geometry.zone_count = 1;
  options.geometry.cylinder_count = 250'000;
  options.geometry.switch_ms = 1.0;
  options.geometry.next_cylinder_ms = 0.8;
  options.geometry.settle_ms = 1.35;
  options.geometry.root_ms = 0.0085;
  options.geometry.full_stroke_ms = 8.4;
  const double track_size_bytes =
      150 * kMebibyte / 1e3 *
      (options.geometry.turn_ms + options.geometry.switch_ms);
  options.geometry.outer_track_size_bytes = track_size_bytes;
  options.geometry.inner_track_size_bytes = track_size_bytes;
  return std::make_unique<HardDiskModel>(options);
}

std::unique_ptr<DriveModel> MakeEvo850() {
  return std::make_unique<SolidStateModel>(SolidStateOptions{});
}

std::unique_ptr<DriveModel> MakeTable1SolidState() {
  SolidStateOptions options;
  options.latency_ms = 0.12;
  options.megabytes_per_second = 1000 * kMebibyte / 1e6;
  return std::make_unique<SolidStateModel>(options);
}

constexpr std::array<DrivePreset, 6> kPresets = {{
    {"wd-red", "5 TB, 5400 rpm, with a good queue of its own", &MakeWdRed},
    {"wd-red-weak", "the same with a weak queue", &MakeWeakWdRed},
    {"wd-red-prio", "wd-red with command priorities", &MakeWdRedWithPriorities},
    {"table1-hdd", "8.5 ms, 150 MiB/s", &MakeTable1HardDisk},
    {"evo-850", "500 GB, 0.25 ms, 540 MB/s", &MakeEvo850},
    {"table1-ssd", "0.12 ms, 1000 MiB/s", &MakeTable1SolidState},
}};

}  // namespace

std::span<const DrivePreset> DrivePresets() {
  return kPresets;
}

absl::StatusOr<std::unique_ptr<DriveModel>> MakeDriveModel(
    absl::string_view name) {
  for (const DrivePreset& preset : kPresets) {
    if (preset.name == name) {
      return preset.make();
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "no drive model is called \"", name, "\"; there are ",
      absl::StrJoin(kPresets, ", ", [](std::string* out, const auto& preset) {
        absl::StrAppend(out, preset.name);
      })));
}

}  // namespace quire
