// SPDX-License-Identifier: GPL-3.0-or-later
//
// The directory of an archive and its files: the first step of opening it.
//
// `quired build --force` swaps two directories and removes the files of the old
// one. Everything that reads an archive therefore opens one directory and takes
// all files from it, so that they belong to the manifest that was read. If some
// of them are gone because the path has come to name another directory, nothing
// is damaged: the reader starts again with the new archive.
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

// An open directory and the manifest that was read from it.
struct ArchiveDirectory {
  UniqueFd fd;
  // For messages.
  std::string path;
  Manifest manifest;
  FileIdentity manifest_file;
};

// Calls `open` with the directory `path`. If `open` fails while `path` has come
// to name another directory, or none, the archive was replaced or removed
// meanwhile: starts again, at most 100 times. So it does if MANIFEST has been
// replaced in the directory: the files that it named before may be gone.
// Errors: NotFound            no such directory, or no MANIFEST in it.
//         DataLoss            the manifest is damaged.
//         FailedPrecondition  written in a format or by a codec that this
//                             program does not know.
//         Aborted             replaced each time; try again later.
//         and what `open` returns for a directory that `path` still names.
absl::Status WithArchiveDirectory(
    const std::string& path,
    const std::function<absl::Status(ArchiveDirectory&)>& open);

// The file of one segment.
struct SegmentFile {
  ReadableFile file;
  // Not open unless it was asked for and the file system can.
  DirectFile direct;
};

// All files that a manifest names, or why one of them cannot be opened.
// Movable.
struct ArchiveFiles {
  // Unset where the manifest names none.
  std::optional<absl::StatusOr<ReadableFile>> dictionary;
  std::optional<absl::StatusOr<ReadableFile>> symbol_table;
  // As in the manifest.
  std::vector<absl::StatusOr<SegmentFile>> segments;
  // Why segments were not opened for direct I/O with DirectIo::kAuto; else
  // empty.
  std::string direct_io_note;

  // Of the first file that cannot be opened or has another size than the
  // manifest says.
  absl::Status FirstFault(const Manifest& manifest) const;
  // Of all files and the manifest. REQUIRES: every file was opened.
  std::vector<FileIdentity> Identify(const ArchiveDirectory& directory) const;
};

// Opens all files. None is read, none is closed before the result is gone, so
// that a replacement that comes later changes nothing.
ArchiveFiles OpenArchiveFiles(const ArchiveDirectory& directory,
                              DirectIo direct_io);

// Opens one segment. `note` gets why there is no direct I/O.
// Errors: DataLoss  it is missing or not a regular file; as ErrnoStatus(); with
//         DirectIo::kOn, as OpenDirect() of direct_file.h.
absl::StatusOr<SegmentFile> OpenSegmentFile(const ArchiveDirectory& directory,
                                            uint32_t segment_number,
                                            DirectIo direct_io,
                                            std::string& note);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_FILES_ARCHIVE_DIRECTORY_H_
