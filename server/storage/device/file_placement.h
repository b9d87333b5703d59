// SPDX-License-Identifier: GPL-3.0-or-later
//
// Position of an open file on its drive, for ordering reads.
#ifndef QUIRE_SERVER_STORAGE_DEVICE_FILE_PLACEMENT_H_
#define QUIRE_SERVER_STORAGE_DEVICE_FILE_PLACEMENT_H_

#include <cstdint>
#include <memory>
#include <string>

#include "codecs/base/positions.h"
#include "server/storage/device/drive_kind.h"
#include "server/storage/device/extent_map.h"

namespace quire {

// Made once when a file is opened, for files that do not change while open. An
// outdated map costs only time: reads go by file and offset. Immutable, hence
// thread-safe.
struct FilePlacement {
  DrivePlace place;
  // Empty if the file system reports none; `note` has the reason.
  ExtentMap extents;
  std::string note = {};
  // Kept as long as the file is read, for its device; null for files on disks.
  std::shared_ptr<const void> registration = nullptr;

  // Like ExtentMap::Find(), but counted from the drive's beginning.
  ExtentMap::Place Find(FileOffset offset) const {
    ExtentMap::Place found = extents.Find(offset);
    if (found.physical.has_value()) {
      *found.physical += place.partition_start_bytes;
    }
    return found;
  }
};

// Asks the kernel. Never fails: unreported positions are unknown. Blocks on
// I/O.
FilePlacement PlaceFile(int fd);

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_DEVICE_FILE_PLACEMENT_H_
