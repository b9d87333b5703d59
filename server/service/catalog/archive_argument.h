// SPDX-License-Identifier: GPL-3.0-or-later
//
// Where archives lie, as the operator names them.
#ifndef QUIRE_SERVER_SERVICE_CATALOG_ARCHIVE_ARGUMENT_H_
#define QUIRE_SERVER_SERVICE_CATALOG_ARCHIVE_ARGUMENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace quire {

// An archive to serve: "NAME=PATH", or "PATH", whose name is then the last part
// of the path without ".quire".
struct ArchiveArgument {
  std::string name;
  // A directory; of an archive in an object store, that of its local copies.
  std::string path;
  // Set for an archive in an object store: "s3://BUCKET/PREFIX" or
  // "https://HOST/PATH". ParseArchiveArgument() then leaves `path` empty.
  std::string url = {};
  // Opened on first use; otherwise at the start.
  bool is_listed = false;
};

// Errors: InvalidArgument  empty path, or a name that is not 1 to 128 of
//                          [A-Za-z0-9._-], or "." or "..".
absl::StatusOr<ArchiveArgument> ParseArchiveArgument(absl::string_view text);

// Result of scanning a directory of archives.
struct DirectoryArchives {
  // By name.
  std::vector<ArchiveArgument> archives;
  // st_dev of the directory: it changes when a file system is mounted or
  // unmounted there.
  uint64_t device = 0;
};

// Returns the archives in a directory: each directory in it, or symbolic link
// to one, that has a MANIFEST or is named *.quire. Skips names that begin with
// a dot and unfinished archives (*.partial). Blocks on I/O.
// Errors: NotFound, PermissionDenied, Unavailable  from the system.
//         InvalidArgument  as ParseArchiveArgument(), or two of one name.
absl::StatusOr<DirectoryArchives> FindArchives(const std::string& directory);

// Errors: InvalidArgument  two have the same name.
absl::Status CheckNamesDiffer(const std::vector<ArchiveArgument>& arguments);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CATALOG_ARCHIVE_ARGUMENT_H_
