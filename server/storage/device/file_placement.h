// SPDX-License-Identifier: GPL-3.0-or-later
//
// Where an open file lies, for the order in which it is read.
#ifndef QUIRE_SERVER_STORAGE_DEVICE_FILE_PLACEMENT_H_
#define QUIRE_SERVER_STORAGE_DEVICE_FILE_PLACEMENT_H_

#include <cstdint>
#include <string>

#include "codecs/base/positions.h"
#include "server/storage/device/drive_kind.h"
#include "server/storage/device/extent_map.h"

namespace quire {

// Made once when a file is opened, for files that do not change while they are
// open. A map that is out of date costs time and nothing else: reads go by file
// and offset.
// Immutable, hence thread-safe.
struct FilePlacement {
  DrivePlace place;
  // Empty if the file system does not say; `note` says why.
  ExtentMap extents;
  std::string note = {};

  // As ExtentMap::Find(), but from the drive's beginning.
  ExtentMap::Place Find(FileOffset offset) const {
    ExtentMap::Place found = extents.Find(offset);
    if (found.physical.has_value()) {
      *found.physical += place.partition_start_bytes;
    }
    return found;
  }
};

// Asks the kernel. Never fails: what it does not say is unknown. Blocks on I/O.
FilePlacement PlaceFile(int fd);

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_DEVICE_FILE_PLACEMENT_H_
