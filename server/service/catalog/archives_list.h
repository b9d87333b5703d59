// SPDX-License-Identifier: GPL-3.0-or-later
//
// The file of `quired serve --archives-list`: archives that are opened on first
// use. One archive a line, as for --archive; empty lines and lines that begin
// with # are skipped:
//
//   [NAME=]PATH
//   [NAME=]s3://BUCKET/PREFIX
//   [NAME=]https://HOST/PATH
//
// Paths are relative to the directory of the file, and may contain blanks
// inside.
#ifndef QUIRE_SERVER_SERVICE_CATALOG_ARCHIVES_LIST_H_
#define QUIRE_SERVER_SERVICE_CATALOG_ARCHIVES_LIST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "server/service/catalog/archive_argument.h"

namespace quire {

// Returns the archives, with `is_listed`. `directory` is that of the file; may
// be empty.
// Errors: InvalidArgument  malformed lines, or two archives of one name; has
//                          "line N: " and the error for each, at most
//                          kShownListErrorsMax, then the number of others.
absl::StatusOr<std::vector<ArchiveArgument>> ParseArchivesList(
    absl::string_view text, const std::string& directory);

inline constexpr size_t kShownListErrorsMax = 20;

// Reads a file of at most 64 MiB. Blocks on I/O.
// Errors: InvalidArgument  it cannot be read, or as above; names the file.
absl::StatusOr<std::vector<ArchiveArgument>> ReadArchivesList(
    const std::string& path);

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CATALOG_ARCHIVES_LIST_H_
