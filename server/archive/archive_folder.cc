// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/archive_folder.h"

#include <fcntl.h>

#include <cerrno>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/bytes.h"
#include "codecs/base/status_macros.h"
#include "server/archive/archive_format.h"

namespace quire {

absl::StatusOr<ArchiveFolder> OpenArchiveFolder(const std::string& path) {
  ArchiveFolder folder;
  folder.fd = UniqueFd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.fd.is_open()) {
    if (errno == ENOTDIR) {
      return absl::NotFoundError(absl::StrCat(
          path, ": is a file; an archive is a folder with a MANIFEST"));
    }
    return ErrnoStatus(errno, path, "open");
  }
  const std::string file = absl::StrCat(path, "/", kManifestFileName);
  absl::StatusOr<UniqueFd> fd_or =
      OpenForReading(folder.fd.get(), kManifestFileName, file);
  if (absl::IsNotFound(fd_or.status())) {
    return absl::NotFoundError(absl::StrCat(
        path, ": is no archive: this folder has no ", kManifestFileName));
  }
  QUIRE_ASSIGN_OR_RETURN(const UniqueFd fd, std::move(fd_or));
  QUIRE_ASSIGN_OR_RETURN(folder.manifest_file_size_bytes,
                         FileSizeBytes(fd.get(), file));
  if (folder.manifest_file_size_bytes > kManifestFileSizeBytesMax) {
    return InFile(file, Damaged(absl::StrCat(folder.manifest_file_size_bytes,
                                             " bytes long, expected at most ",
                                             kManifestFileSizeBytesMax)));
  }
  std::string bytes(folder.manifest_file_size_bytes, '\0');
  QUIRE_RETURN_IF_ERROR(ReadExactly(fd.get(), 0, AsMutableBytes(bytes), file));
  auto manifest = ParseManifest(AsBytes(bytes));
  QUIRE_RETURN_IF_ERROR(InFile(file, manifest.status()));
  folder.manifest = *std::move(manifest);
  return folder;
}

}  // namespace quire
