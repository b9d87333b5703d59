// SPDX-License-Identifier: GPL-3.0-or-later
//
// The folder of an archive: the first step of opening it.
#ifndef QUIRE_SERVER_ARCHIVE_ARCHIVE_FOLDER_H_
#define QUIRE_SERVER_ARCHIVE_ARCHIVE_FOLDER_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

#include "server/archive/file_io.h"
#include "server/archive/manifest.h"

namespace quire {

struct ArchiveFolder {
  // The other files are opened from here, so that they belong to the manifest
  // that was read even if the archive is replaced meanwhile.
  UniqueFd fd;
  Manifest manifest;
  uint64_t manifest_file_size_bytes = 0;
};

// Opens the folder `path` and reads its manifest.
// Errors: as Archive::Open().
absl::StatusOr<ArchiveFolder> OpenArchiveFolder(const std::string& path);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_ARCHIVE_FOLDER_H_
