// SPDX-License-Identifier: GPL-3.0-or-later
//
// The directory of an archive and its files: the first step of opening it.
//
// `quired build --force` swaps two directories and removes the files of the old
// one. A reader of an archive therefore opens one directory and takes all files
// from it, so that they belong to the manifest that it read. If files are
// missing because the path now names another directory, nothing is damaged: the
// reader starts again with the new archive.
#ifndef QUIRE_SERVER_ARCHIVE_FILES_ARCHIVE_DIRECTORY_H_
#define QUIRE_SERVER_ARCHIVE_FILES_ARCHIVE_DIRECTORY_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/archive/files/direct_file.h"
#include "server/archive/files/file_io.h"
#include "server/archive/format/manifest.h"

namespace quire {

// An open directory and its manifest.
struct ArchiveDirectory {
  UniqueFd fd;
  // For messages.
  std::string path;
  Manifest manifest;
  FileIdentity manifest_file;
};

// Calls `open` with the directory `path`. If `open` fails while `path` names
// another directory, or none, the archive was replaced or removed: starts
// again, at most 100 times. The same applies if MANIFEST was replaced in the
// directory, since the files that it named may be missing.
// Errors: NotFound            no such directory, or no MANIFEST in it.
//         DataLoss            the manifest is damaged.
//         FailedPrecondition  written in a format or by a codec that this
//                             program does not know.
//         Aborted             replaced each time; try again later.
//         and what `open` returns for a directory that `path` still names.
absl::Status WithArchiveDirectory(
    const std::string& path,
    const std::function<absl::Status(ArchiveDirectory&)>& open);

// Opens the archive in the directory `path` for a writer that publishes its
// contents again.
// Errors: as WithArchiveDirectory(); FailedPrecondition also if the archive has
//         parts that this program does not know, and would drop.
absl::StatusOr<ArchiveDirectory> OpenKnownArchive(const std::string& path);

// Opens the directory `path` without its manifest, for damaged archives.
// Errors: NotFound  no such directory; as ErrnoStatus().
absl::StatusOr<ArchiveDirectory> OpenDirectoryOnly(const std::string& path);

// Reads MANIFEST into `directory`. `bytes`, unless null, receives the file.
// Errors: NotFound, DataLoss, FailedPrecondition, as WithArchiveDirectory().
absl::Status ReadManifest(ArchiveDirectory& directory,
                          std::string* bytes = nullptr);

struct SegmentFile {
  ReadableFile file;
  // Open only if requested and supported by the file system.
  DirectFile direct;
};

// All files that a manifest names, or the error of opening one. Movable.
struct ArchiveFiles {
  // Unset if the manifest names none.
  std::optional<absl::StatusOr<ReadableFile>> dictionary;
  std::optional<absl::StatusOr<ReadableFile>> symbol_table;
  // In manifest order.
  std::vector<absl::StatusOr<SegmentFile>> segments;
  // Reason why segments have no direct I/O with DirectIo::kAuto; otherwise
  // empty.
  std::string direct_io_note;

  // Error of the first file that cannot be opened or has another size than in
  // the manifest.
  absl::Status FirstFault(const Manifest& manifest) const;
  // Leaves times out of the identities of dictionary and segments, for sparse
  // copies. REQUIRES: every file was opened.
  void IgnoreTimes();
  // Identities of all files and the manifest. REQUIRES: every file was opened.
  std::vector<FileIdentity> Identify(const ArchiveDirectory& directory) const;
};

// Opens all files. Reads none, and keeps all open for the life of the result,
// so that a later replacement has no effect.
ArchiveFiles OpenArchiveFiles(const ArchiveDirectory& directory,
                              DirectIo direct_io);

// Opens one segment. `note` receives the reason if there is no direct I/O.
// Errors: DataLoss  it is missing or not a regular file; as ErrnoStatus(); with
//         DirectIo::kOn, as OpenDirect() of direct_file.h.
absl::StatusOr<SegmentFile> OpenSegmentFile(const ArchiveDirectory& directory,
                                            uint32_t segment_number,
                                            DirectIo direct_io,
                                            std::string& note);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_FILES_ARCHIVE_DIRECTORY_H_
