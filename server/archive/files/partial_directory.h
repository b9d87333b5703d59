// SPDX-License-Identifier: GPL-3.0-or-later
//
// The directory of an archive that is being written, and its publication, which
// must survive a kill at any moment.
//
// The directory is PATH.partial. The file PARTIAL marks it as ours, and its
// writer locks that file. The kernel releases the lock with the process, so a
// directory whose PARTIAL can be locked is a leftover. A directory with files
// but without PARTIAL is not ours and stays untouched, and so does one of
// another user: anybody may create it in a shared parent.
//
// Publishing renames the directory to PATH, or swaps it with the existing
// archive, which gets a PARTIAL and loses its JOURNAL first. PATH is therefore
// always a complete archive or nothing. A killed writer leaves a marked
// PATH.partial: its own or the replaced archive. If it is killed around the
// rename, the archive at PATH keeps a PARTIAL. Readers ignore it, and it
// disappears with the archive.
#ifndef QUIRE_SERVER_ARCHIVE_FILES_PARTIAL_DIRECTORY_H_
#define QUIRE_SERVER_ARCHIVE_FILES_PARTIAL_DIRECTORY_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"
#include "server/archive/files/file_io.h"

namespace quire {

// A resumable writer keeps a file JOURNAL in the directory (build_journal.h),
// which is not part of the archive either. Saved documents are written to
// PATH.partial/SALVAGED, a tar or a directory, which is renamed to PATH.

inline constexpr char kSalvagedName[] = "SALVAGED";

// Treatment of the files of an earlier writer.
enum class Leftovers {
  kRemove,
  // Keep them if a JOURNAL exists.
  kKeep,
};

// Returns the names in a directory, without "." and "..". `name` is its path
// for messages. Errors: as ErrnoStatus().
absl::StatusOr<std::vector<std::string>> ListDirectory(int directory_fd,
                                                       absl::string_view name);

// Movable. Thread-compatible.
class PartialDirectory {
 public:
  // Acquires PATH.partial. Removes the files of a killed writer unless
  // `leftovers` keeps them.
  // Errors: AlreadyExists       PATH exists and `replace` is false, or is not
  //                             an archive; or PATH.partial is not the
  //                             leftover of a writer, or holds other files.
  //         FailedPrecondition  another writer owns it.
  //         InvalidArgument     no path to give a new directory.
  //         NotFound            the parent directory does not exist.
  //         PermissionDenied, Unavailable.
  static absl::StatusOr<PartialDirectory> Create(
      const std::string& path, bool replace,
      Leftovers leftovers = Leftovers::kRemove);

  // Acquires PATH.partial for a file or directory kSalvagedName in it.
  // Errors: as CreateForFiles(); AlreadyExists  anything is at PATH.
  static absl::StatusOr<PartialDirectory> CreateForSalvage(
      const std::string& path);

  // Acquires PATH.partial for new files of PATH, or for replacing files of it.
  // PATH is an existing directory whose MANIFEST may be missing. Keeps other
  // writers away.
  // Errors: as Create(); FailedPrecondition also if a killed writer left
  // PATH.partial for resuming.
  static absl::StatusOr<PartialDirectory> CreateForFiles(
      const std::string& path);

  PartialDirectory(PartialDirectory&&) noexcept = default;
  PartialDirectory& operator=(PartialDirectory&&) = delete;
  // Removes the directory unless Publish() succeeded or KeepUnpublished() was
  // called.
  ~PartialDirectory();

  // Keeps the unpublished directory for a later writer.
  void KeepUnpublished() { stays_ = true; }

  // Removes the archive files selected by `is_removed`, and syncs the
  // directory. Errors: as Create().
  absl::Status RemoveFiles(
      const std::function<bool(absl::string_view name)>& is_removed);

  // Open during the life of this object.
  int fd() const { return directory_.get(); }

  // Path of the directory, for messages.
  const std::string& name() const { return name_; }

  // Writes MANIFEST, and syncs it and the directory. Errors: as Create().
  absl::Status WriteManifest(ByteView manifest);

  // Renames all files into the open directory `archive_fd`, MANIFEST last, and
  // syncs that directory before MANIFEST. `path` is its path for messages.
  // REQUIRES: WriteManifest() succeeded.
  // Errors: as Create(). The directory is then unchanged.
  absl::Status MoveFilesInto(int archive_fd, const std::string& path);

  // Renames the directory to PATH, and syncs the parent directory.
  // REQUIRES: Create() made this; all files are written and synced, MANIFEST by
  // WriteManifest(). Errors: as Create(). If syncing the parent directory
  // fails, the archive stays published.
  absl::Status Publish();

  // Renames kSalvagedName to PATH, removes the directory, and syncs its parent.
  // REQUIRES: CreateForSalvage() made this; the output is synced. Errors: as
  // Create().
  absl::Status PublishSalvaged();

  // Renames a file of this directory into PATH, where it replaces the file of
  // that name, and syncs PATH. REQUIRES: CreateForFiles() made this; the file
  // is synced. Errors: as Create().
  absl::Status MoveFile(const std::string& file_name);

 private:
  PartialDirectory() = default;
  // Opens the parent of `path`.
  static absl::StatusOr<PartialDirectory> Locate(const std::string& path);
  absl::Status AcquirePatiently(Leftovers leftovers);
  // The same, but refuses a build that can be resumed.
  absl::Status AcquireUnlessResumable();
  absl::Status Acquire(Leftovers leftovers);
  // Opens the mark; in an empty directory creates it and sets `is_new`.
  absl::StatusOr<UniqueFd> OpenMark(int directory_fd, bool& is_new) const;
  // True if PATH.partial is still that directory.
  bool IsNamed(int directory_fd) const;
  absl::Status MoveIntoPlace();
  absl::Status SwapWithOld();
  // Removes mark and journal from the published directory, which unlocks it.
  void RemoveMark();

  std::string path_;
  std::string name_;
  bool replace_ = false;
  // Both names are relative to this, so that a change of the working directory
  // has no effect.
  UniqueFd parent_;
  std::string base_name_;
  std::string partial_base_name_;
  UniqueFd directory_;
  // Locked.
  UniqueFd mark_;
  bool published_ = false;
  bool stays_ = false;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_FILES_PARTIAL_DIRECTORY_H_
