// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/catalog/drive_report.h"

#include <fcntl.h>

#include <cstdint>

#include "absl/strings/str_cat.h"

#include "codecs/base/byte_size.h"
#include "server/archive/files/file_io.h"

namespace quire {

std::vector<DriveInfo> DrivesOf(const ServedArchive& served,
                                std::optional<DriveKind> kind) {
  std::vector<DriveInfo> drives;
  for (const auto& placement : served.placements) {
    drives.push_back(placement->place.drive);
    if (drives.back().kind != DriveKind::kObjectStore) {
      drives.back().kind = kind.value_or(drives.back().kind);
    }
  }
  return drives;
}

DriveInfo DriveOfDirectory(const std::string& path,
                           std::optional<DriveKind> kind) {
  const UniqueFd fd(open(path.c_str(), O_PATH | O_CLOEXEC));
  DriveInfo drive = DetectDrive(fd.get()).drive;
  drive.kind = kind.value_or(drive.kind);
  return drive;
}

std::string DescribeDrives(const BlockStore& store,
                           const Catalog::ByName& archives) {
  std::string lines;
  for (const DriveDescription& description : store.Drives()) {
    if (description.drive.name.empty()) {
      // No drive is known before the first archive is opened.
      continue;
    }
    uint64_t file_count = 0;
    uint64_t mapped_count = 0;
    for (const auto& [name, served] : archives) {
      for (const auto& placement : served->placements) {
        const bool is_here =
            placement->place.drive.name == description.drive.name;
        file_count += is_here ? 1 : 0;
        mapped_count += is_here && !placement->extents.empty() ? 1 : 0;
      }
    }
    absl::StrAppend(
        &lines, "drive ", description.drive.name, ": ",
        DriveKindName(description.drive.kind), ", reads through ",
        description.engine,
        description.note.empty() ? ""
                                 : absl::StrCat(" (", description.note, ")"),
        description.uses_priorities ? ", with drive priorities" : "",
        ", in physical order in ", mapped_count, " of ",
        FormatCounted(file_count, "file", "files"), "\n");
  }
  return lines;
}

}  // namespace quire
