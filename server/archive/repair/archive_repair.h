// SPDX-License-Identifier: GPL-3.0-or-later
//
// Replaces the damaged parts of an archive by those of copies.
//
// Every part of an archive has a checksum that depends on the manifest: the
// header and the table of a segment, its sections, its blocks through their
// chain, the dictionary, the symbol table. A part is therefore taken from any
// copy that has it undamaged, and a file is replaced only if all of it matches.
#ifndef QUIRE_SERVER_ARCHIVE_REPAIR_ARCHIVE_REPAIR_H_
#define QUIRE_SERVER_ARCHIVE_REPAIR_ARCHIVE_REPAIR_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace quire {

// A file of the archive that is damaged.
struct RepairedFile {
  // "segment-00000001".
  std::string name = {};
  // Parts taken from a copy or derived from the manifest, and their size. The
  // whole file counts if it is missing.
  uint64_t replaced_count = 0;
  uint64_t replaced_size_bytes = 0;
  // Parts that no copy has undamaged: "document ids", "blocks 3 to 7". If there
  // are any, the file stays unchanged.
  std::vector<std::string> missing = {};
};

struct RepairReport {
  std::string uuid;
  // Files that the manifest names, and MANIFEST.
  uint64_t file_count = 0;
  // The damaged ones, in the order of on_file.
  std::vector<RepairedFile> files;

  // True if all files are whole after the repair.
  bool IsWhole() const;
};

struct RepairProgress {
  uint64_t bytes_done = 0;
  // Size of the archive's files.
  uint64_t bytes_total = 0;
};

struct RepairOptions {
  // Affects behaviour: find out what would be replaced, and change nothing.
  bool dry_run = false;
  // Called periodically; may be empty.
  std::function<void(const RepairProgress&)> on_progress = {};
};

// Repairs the archive in the directory `path` with parts of the archives in
// the directories `copies`, which may be damaged too. First reads all files of
// the archive, and the damaged parts in the copies. Then, for each damaged
// file: makes a new one from its undamaged parts (sharing their storage where
// the file system can) and the replacements, syncs it, reads it back, and
// renames it over the old one. MANIFEST is last. A kill leaves each file old or
// new; another run does the rest. Whole archives stay unchanged. Holds the
// indexes of the blocks of one segment, and 24 bytes for each damaged part.
// Blocks.
// Errors: NotFound            `path` or a copy is not a directory.
//         FailedPrecondition  a copy has another uuid; MANIFEST is damaged and
//                             the segments do not show that the two are of the
//                             same archive and state; a newer program is
//                             needed; another writer is at work.
//         DataLoss            no directory has an undamaged MANIFEST.
//         Unavailable, PermissionDenied  of the file system, such as a full
//                             disk. Files renamed before stay repaired.
absl::StatusOr<RepairReport> RepairArchive(const std::string& path,
                                           std::span<const std::string> copies,
                                           const RepairOptions& options);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_REPAIR_ARCHIVE_REPAIR_H_
