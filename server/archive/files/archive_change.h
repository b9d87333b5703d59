// SPDX-License-Identifier: GPL-3.0-or-later
//
// A change of an existing archive, or of a copy of one: new files, then a
// manifest that names them.
//
// New files are written to PATH.partial, which keeps other writers away
// (partial_directory.h), and synced. Commit() renames them into PATH and syncs
// it; then it renames the new manifest, which is synced, over MANIFEST and
// syncs PATH again. PATH is therefore the old or the new archive at any moment.
// If the writer is killed before the last rename, PATH also has files that its
// manifest does not name: readers ignore them, and the next writer removes
// them.
//
// A copy is a new archive. Its files are hard links, or copies where the file
// system refuses links; Commit() renames PATH.partial to PATH.
#ifndef QUIRE_SERVER_ARCHIVE_FILES_ARCHIVE_CHANGE_H_
#define QUIRE_SERVER_ARCHIVE_FILES_ARCHIVE_CHANGE_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "server/archive/files/archive_directory.h"
#include "server/archive/files/file_io.h"
#include "server/archive/files/partial_directory.h"
#include "server/archive/format/manifest.h"

namespace quire {

// States of the archive before a change.
enum class EarlierStates {
  // The documents before the change are the first ones after it, unchanged: the
  // state joins the history, which drops its oldest state when it is full.
  kKeep,
  // Documents were removed, and the positions of all stay: the state and those
  // of the history join the redacted states, and the history ends.
  kRedact,
  // Positions of documents changed: no earlier state is left.
  kDrop,
};

// Movable. Thread-compatible.
class ArchiveChange {
 public:
  // Locks the archive at `path`, which may be a symbolic link, against other
  // writers, and reads its manifest. Removes files that a killed writer left.
  // Blocks on I/O.
  // Errors: NotFound            no archive.
  //         DataLoss            the manifest is damaged.
  //         FailedPrecondition  another writer is at work; or PATH.partial has
  //                             an unfinished archive; or the archive has parts
  //                             that this program does not know, and would
  //                             drop; or is a mount point.
  //         AlreadyExists       PATH.partial is not ours.
  //         PermissionDenied, Unavailable.
  static absl::StatusOr<ArchiveChange> Begin(const std::string& path);

  // Begins a change of a copy of `from`, which will be a new archive at `path`.
  // Blocks on I/O. Errors: as PartialDirectory::Create() and AddFiles().
  static absl::StatusOr<ArchiveChange> BeginCopy(
      const ArchiveDirectory& from, const std::string& path, bool replace,
      const std::atomic<bool>* cancel);

  ArchiveChange(ArchiveChange&&) noexcept = default;
  ArchiveChange& operator=(ArchiveChange&&) = delete;
  // Removes all new files unless Commit() succeeded.
  ~ArchiveChange() = default;

  // Path of the archive; without symbolic links, unless it is a copy.
  const std::string& path() const { return path_; }

  // True if BeginCopy() made this: Commit() publishes an archive in any case.
  bool is_copy() const { return !archive_.is_open(); }

  // The manifest before the change.
  const Manifest& manifest() const { return manifest_; }

  // Directory for the new files, and its path for messages. Their names must
  // not be names of files of the archive.
  int fd() const { return partial_.fd(); }

  const std::string& name() const { return partial_.name(); }

  struct Committed {
    Manifest manifest;
    uint64_t file_size_bytes = 0;
    // An error if files that it no longer names may remain: removing them, or
    // syncing their removal, failed. The next writer removes them.
    absl::Status old_files;
  };

  // Directory of the archive. REQUIRES: !is_copy().
  int archive_fd() const { return archive_.get(); }

  // Adds those files that the manifest of `from` names and fd() lacks, synced:
  // hard links, or copies where that fails. `cancel` may be null. Blocks.
  // Errors: NotFound, Unavailable, PermissionDenied; DataLoss  the device
  //         cannot read one; Cancelled.
  absl::Status AddFiles(const ArchiveDirectory& from,
                        const std::atomic<bool>* cancel);

  // Removes a new file that is not needed. Errors: as ErrnoStatus().
  absl::Status RemoveNew(const std::string& name);

  // Publishes `manifest`, whose uuid and earlier states this call sets, with
  // all files of fd(). Then removes the files that it no longer names; readers
  // that have them open are not affected. The change is unusable afterwards.
  // Returns the published manifest and the size of its file. REQUIRES: the new
  // files are synced. Errors: FailedPrecondition  the archive was replaced
  // meanwhile.
  //         DataLoss            readers would reject `manifest`.
  //         PermissionDenied, Unavailable.
  // After an error the archive is unchanged, except if the last sync of its
  // directory failed; the message says so.
  absl::StatusOr<Committed> Commit(Manifest manifest, EarlierStates earlier);

 private:
  ArchiveChange(PartialDirectory partial, std::string path)
      : partial_(std::move(partial)), path_(std::move(path)) {}

  absl::Status OpenArchive();
  // Errors: FailedPrecondition  PATH or its MANIFEST is another one.
  absl::Status CheckUnchanged() const;
  // Removes files of an archive in PATH that `manifest` does not name. Syncs
  // PATH before and after if there are any.
  absl::Status RemoveUnnamed(const Manifest& manifest) const;

  PartialDirectory partial_;
  std::string path_;
  UniqueFd archive_;
  Manifest manifest_;
  FileIdentity manifest_file_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_FILES_ARCHIVE_CHANGE_H_
