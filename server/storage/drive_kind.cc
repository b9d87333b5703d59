// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/drive_kind.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <fstream>

#include "absl/strings/str_cat.h"

namespace quire {

BlockStoreOptions::Drive DetectDrive(const std::string& path,
                                     const std::string& sysfs) {
  struct stat status {};

  if (stat(path.c_str(), &status) != 0) {
    return BlockStoreOptions::Drive::kSolidState;
  }
  const std::string device = absl::StrCat(
      sysfs, "/dev/block/", major(status.st_dev), ":", minor(status.st_dev));
  // A partition's folder lies in its disk's.
  for (const char* queue : {"/queue", "/../queue"}) {
    std::ifstream file(absl::StrCat(device, queue, "/rotational"));
    if (int rotational = 0; file >> rotational) {
      return rotational == 1 ? BlockStoreOptions::Drive::kRotational
                             : BlockStoreOptions::Drive::kSolidState;
    }
  }
  return BlockStoreOptions::Drive::kSolidState;
}

}  // namespace quire
