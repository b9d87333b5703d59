// SPDX-License-Identifier: GPL-3.0-or-later
//
// The drive that a file lies on.
#ifndef QUIRE_SERVER_STORAGE_DEVICE_DRIVE_KIND_H_
#define QUIRE_SERVER_STORAGE_DEVICE_DRIVE_KIND_H_

#include <cstdint>
#include <string>

namespace quire {

enum class DriveKind {
  kSolidState,
  // An arm has to move.
  kRotational,
};

// "rotational" or "solid-state".
const char* DriveKindName(DriveKind kind);

// What the kernel says of a drive.
struct DriveInfo {
  // Of the disk, "sda", or the device's number, "0:42", where sysfs does not
  // know it. Files on drives of one name share a queue.
  std::string name = {};
  DriveKind kind = DriveKind::kSolidState;
  // It serves commands that are marked as urgent before others (NCQ priority of
  // SATA), and the administrator lets it.
  bool has_priorities = false;
};

struct DrivePlace {
  DriveInfo drive;
  // Where on the drive the partition begins that the file system lies on.
  uint64_t partition_start_bytes = 0;
};

// Asks sysfs, mounted at `sysfs`, about the device that the open file lies on,
// or the disk that the device is a partition of. What sysfs does not know (a
// network, memory, an overlay of several) counts as a drive without moving
// parts, and so does a virtual machine's virtio disk, which says "rotational"
// whatever is underneath. Volumes over several disks count as one drive. Blocks
// on I/O for a moment.
DrivePlace DetectDrive(int fd, const std::string& sysfs = "/sys");

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_DEVICE_DRIVE_KIND_H_
