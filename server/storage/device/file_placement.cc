// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/device/file_placement.h"

#include <utility>

#include "absl/status/statusor.h"

namespace quire {

FilePlacement PlaceFile(int fd) {
  FilePlacement placement;
  placement.place = DetectDrive(fd);
  absl::StatusOr<ExtentMap> extents = ExtentMap::Read(fd);
  if (!extents.ok()) {
    placement.note = std::string(extents.status().message());
  } else if (extents->empty()) {
    placement.note = "the file system reports no extent of it";
  } else {
    placement.extents = *std::move(extents);
  }
  return placement;
}

}  // namespace quire
