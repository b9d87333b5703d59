// SPDX-License-Identifier: GPL-3.0-or-later
//
// The directory in which an archive grows until it takes its place, and
// everything about that place that must survive a kill at any moment.
//
// The directory is PATH.partial. The file PARTIAL in it says that it is ours,
// and is locked by the writer that owns it: the kernel drops the lock with the
// process, so a directory whose PARTIAL can be locked is a leftover. A
// directory that holds anything, but no such file, is not ours and is left
// alone.
//
// Publishing renames the directory to PATH, or swaps it with the archive that
// is there, which gets a PARTIAL beforehand; so PATH is a whole archive or
// nothing at all times, and what a killed writer leaves is always called
// PATH.partial and marked, be it new or the archive that was replaced. If a
// writer is killed in the moment around the rename, the archive in place keeps
// a PARTIAL. It means nothing there: readers ignore it, and it goes with the
// archive.
#ifndef QUIRE_SERVER_ARCHIVE_FILES_PARTIAL_DIRECTORY_H_
#define QUIRE_SERVER_ARCHIVE_FILES_PARTIAL_DIRECTORY_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"
#include "server/archive/files/file_io.h"

namespace quire {

// A writer that can go on where an earlier one ended keeps a file JOURNAL in
// the directory (build_journal.h), which is no part of the archive either.

// What becomes of the files that an earlier writer left.
enum class Leftovers {
  kRemove,
  // They stay if there is a JOURNAL among them.
  kKeep,
};

// Movable. Thread-compatible.
class PartialDirectory {
 public:
  // Takes possession of PATH.partial, removing what a killed writer left in it
  // unless that is to be kept.
  // Errors: AlreadyExists       PATH exists and `replace` is false, or is not
  //                             an archive; or PATH.partial is not what a
  //                             writer left, or holds files besides those.
  //         FailedPrecondition  another writer owns it.
  //         InvalidArgument     no path to give a new directory.
  //         NotFound            the parent directory does not exist.
  //         PermissionDenied, Unavailable.
  static absl::StatusOr<PartialDirectory> Create(
      const std::string& path, bool replace,
      Leftovers leftovers = Leftovers::kRemove);

  PartialDirectory(PartialDirectory&&) noexcept = default;
  PartialDirectory& operator=(PartialDirectory&&) = delete;
  // Removes the directory unless Publish() succeeded or it is to stay.
  ~PartialDirectory();

  // The directory stays as it is if it is not published, for a later writer.
  void KeepUnpublished() { stays_ = true; }

  // Removes those files of an archive for which `is_removed` says so, and syncs
  // the directory. Errors: as Create().
  absl::Status RemoveFiles(
      const std::function<bool(absl::string_view name)>& is_removed);

  // Stays open as long as this lives.
  int fd() const { return directory_.get(); }

  // Path of the directory, for messages.
  const std::string& name() const { return name_; }

  // Writes MANIFEST, syncs it and the directory, puts the directory in its
  // place, and syncs the parent directory. REQUIRES: all other files are
  // written and synced. Errors: as Create(). An error after the archive took
  // its place (the parent directory cannot be synced) leaves it there.
  absl::Status Publish(ByteView manifest);

 private:
  PartialDirectory() = default;
  absl::Status Acquire(Leftovers leftovers);
  // Opens the file that marks the directory as ours; creates it in an empty
  // one, and then sets `is_new`.
  absl::StatusOr<UniqueFd> OpenMark(int directory_fd, bool& is_new) const;
  // Whether PATH.partial is still that directory.
  bool IsNamed(int directory_fd) const;
  absl::Status MoveIntoPlace();
  absl::Status SwapWithOld();
  // From the directory that is published, and its lock; the journal with it.
  void RemoveMark();

  std::string path_;
  std::string name_;
  bool replace_ = false;
  // Both names are looked up here, so that nothing depends on the working
  // directory's staying the same.
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
