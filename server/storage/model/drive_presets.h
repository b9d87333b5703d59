// SPDX-License-Identifier: GPL-3.0-or-later
//
// Modelled drives by name.
#ifndef QUIRE_SERVER_STORAGE_MODEL_DRIVE_PRESETS_H_
#define QUIRE_SERVER_STORAGE_MODEL_DRIVE_PRESETS_H_

#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "server/storage/model/drive_model.h"

namespace quire {

// RLZ is "Access Time Tradeoffs in Archive Compression".
struct DrivePreset {
  absl::string_view name;
  absl::string_view summary;
  std::unique_ptr<DriveModel> (*make)();
};

//   wd-red        the hard disk of RLZ, section 4
//   wd-red-weak   the same with firmware that orders its queue badly
//   wd-red-prio   wd-red, if it knew command priorities
//   table1-hdd    the hard disk of RLZ, Table 1: 8.5 ms, 150 MiB/s
//   evo-850       the solid-state drive of RLZ, section 4
//   table1-ssd    the solid-state drive of RLZ, Table 1: 0.12 ms, 1000 MiB/s
// Valid for the life of the program.
std::span<const DrivePreset> DrivePresets();

// Errors: InvalidArgument  unknown preset; the message lists all.
absl::StatusOr<std::unique_ptr<DriveModel>> MakeDriveModel(
    absl::string_view name);

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_MODEL_DRIVE_PRESETS_H_
