// SPDX-License-Identifier: GPL-3.0-or-later
//
// What kind of drive a file lies on.
#ifndef QUIRE_SERVER_STORAGE_DRIVE_KIND_H_
#define QUIRE_SERVER_STORAGE_DRIVE_KIND_H_

#include <string>

#include "server/storage/block_store.h"

namespace quire {

// As sysfs says of the device that the path lies on, or of the disk that the
// device is a partition of. What sysfs does not know (a network, memory, an
// overlay of several) counts as a drive without moving parts. Virtual machines
// often say "rotational" whatever is underneath.
// `sysfs` is where sysfs is mounted. Blocks on I/O for a moment.
BlockStoreOptions::Drive DetectDrive(const std::string& path,
                                     const std::string& sysfs = "/sys");

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_DRIVE_KIND_H_
