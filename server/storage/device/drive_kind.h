// SPDX-License-Identifier: GPL-3.0-or-later
//
// The drive that stores a file.
#ifndef QUIRE_SERVER_STORAGE_DEVICE_DRIVE_KIND_H_
#define QUIRE_SERVER_STORAGE_DEVICE_DRIVE_KIND_H_

#include <cstdint>
#include <string>

namespace quire {

enum class DriveKind {
  kSolidState,
  // With an arm that moves.
  kRotational,
  // A bucket of an object store, read by ranged GETs.
  kObjectStore,
};

// "rotational", "solid-state" or "object store".
const char* DriveKindName(DriveKind kind);

// Properties of a drive, from the kernel.
struct DriveInfo {
  // Name of the disk, "sda", or the device's number, "0:42", if sysfs does not
  // know it. Files on drives of one name share a queue.
  std::string name = {};
  DriveKind kind = DriveKind::kSolidState;
  // True if the drive serves commands marked as urgent first (NCQ priority of
  // SATA), and the administrator has enabled it.
  bool has_priorities = false;
};

struct DrivePlace {
  DriveInfo drive;
  // Offset on the drive of the file system's partition.
  uint64_t partition_start_bytes = 0;
};

// Reads sysfs, mounted at `sysfs`, about the device of the open file, or the
// disk that contains its partition. A device unknown to sysfs (a network,
// memory, an overlay) counts as a drive without moving parts. So does a virtio
// disk, which reports "rotational" for any hardware. A volume over several
// disks counts as one drive. Blocks briefly on I/O.
DrivePlace DetectDrive(int fd, const std::string& sysfs = "/sys");

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_DEVICE_DRIVE_KIND_H_
