// SPDX-License-Identifier: GPL-3.0-or-later
//
// The folder in which an archive grows until it takes its place, and everything
// about that place that must survive a kill at any moment.
//
// The folder is PATH.partial. Its MANIFEST, empty until the end, is locked by
// the writer that owns it: the kernel drops the lock with the process, so a
// folder whose MANIFEST can be locked is a leftover. Publishing renames the
// folder to PATH, or swaps it with the archive that is there; so PATH is a
// whole archive or nothing at all times, and what a killed writer leaves is
// always called PATH.partial, be it new or the archive that was replaced.
#ifndef QUIRE_SERVER_ARCHIVE_PARTIAL_FOLDER_H_
#define QUIRE_SERVER_ARCHIVE_PARTIAL_FOLDER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "server/archive/file_io.h"

namespace quire {

// Movable. Thread-compatible.
class PartialFolder {
 public:
  // Takes possession of an empty PATH.partial, clearing what a killed writer
  // left in it.
  // Errors: AlreadyExists       PATH exists and `replace` is false, or is not
  //                             an archive; or PATH.partial holds files that
  //                             are not an archive's.
  //         FailedPrecondition  another writer owns it.
  //         InvalidArgument     no path to give a new folder.
  //         NotFound            the parent folder does not exist.
  //         PermissionDenied, Unavailable.
  static absl::StatusOr<PartialFolder> Create(const std::string& path,
                                              bool replace);

  PartialFolder(PartialFolder&&) noexcept = default;
  PartialFolder& operator=(PartialFolder&&) = delete;
  // Removes the folder unless Publish() succeeded.
  ~PartialFolder();

  // Stays open as long as this lives.
  int fd() const { return folder_.get(); }

  // Path of the folder, for messages.
  const std::string& name() const { return name_; }

  // Writes MANIFEST, syncs it and the folder, and puts the folder in its place.
  // REQUIRES: all other files are written and synced.
  // Errors: as Create(). An error after the archive took its place (the parent
  // folder cannot be synced) leaves it there.
  absl::Status Publish(ByteView manifest);

 private:
  PartialFolder() = default;
  absl::Status Acquire();
  absl::Status MoveIntoPlace();
  absl::Status SwapWithOld();

  std::string path_;
  std::string name_;
  bool replace_ = false;
  // Both names are looked up here, so that nothing depends on the working
  // folder's staying the same.
  UniqueFd parent_;
  std::string base_name_;
  std::string partial_base_name_;
  UniqueFd folder_;
  UniqueFd manifest_;
  bool published_ = false;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_PARTIAL_FOLDER_H_
