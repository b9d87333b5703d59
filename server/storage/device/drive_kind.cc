// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/device/drive_kind.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace quire {
namespace {

// Unit of sysfs, independent of the drive's sector size.
constexpr uint64_t kSectorSizeBytes = 512;

std::optional<uint64_t> ReadNumber(const std::filesystem::path& path) {
  std::ifstream file(path);
  uint64_t number = 0;
  return file >> number ? std::optional(number) : std::nullopt;
}

// virtio's driver calls every disk rotational; its directory is below that of a
// device like "virtio1".
bool IsVirtual(const std::filesystem::path& disk) {
  return std::any_of(disk.begin(), disk.end(),
                     [](const std::filesystem::path& part) {
                       return part.native().starts_with("virtio");
                     });
}

}  // namespace

const char* DriveKindName(DriveKind kind) {
  return kind == DriveKind::kRotational    ? "rotational"
         : kind == DriveKind::kObjectStore ? "object store"
                                           : "solid-state";
}

DrivePlace DetectDrive(int fd, const std::string& sysfs) {
  DrivePlace place;

  struct stat status {};

  if (fstat(fd, &status) != 0) {
    return place;
  }
  place.drive.name =
      absl::StrCat(major(status.st_dev), ":", minor(status.st_dev));
  std::error_code error;
  std::filesystem::path directory = std::filesystem::canonical(
      absl::StrCat(sysfs, "/dev/block/", place.drive.name), error);
  if (error) {
    return place;
  }
  if (!std::filesystem::exists(directory / "queue", error)) {
    // A partition's directory is below its disk's.
    if (!std::filesystem::exists(directory.parent_path() / "queue", error)) {
      return place;
    }
    place.partition_start_bytes =
        ReadNumber(directory / "start").value_or(0) * kSectorSizeBytes;
    directory = directory.parent_path();
  }
  place.drive.name = directory.filename().string();
  if (ReadNumber(directory / "queue" / "rotational") == 1 &&
      !IsVirtual(directory)) {
    place.drive.kind = DriveKind::kRotational;
  }
  place.drive.has_priorities =
      ReadNumber(directory / "device" / "ncq_prio_supported") == 1 &&
      ReadNumber(directory / "device" / "ncq_prio_enable") == 1;
  return place;
}

}  // namespace quire
