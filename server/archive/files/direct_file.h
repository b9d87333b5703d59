// SPDX-License-Identifier: GPL-3.0-or-later
//
// Files read past the page cache (O_DIRECT). A server that has a cache of its
// own, bounded by what it was given, needs no second one in the kernel, which
// would hold the stored bytes of what the first holds as text, read ahead where
// a batch has an order of its own, and push out what others need.
#ifndef QUIRE_SERVER_ARCHIVE_FILES_DIRECT_FILE_H_
#define QUIRE_SERVER_ARCHIVE_FILES_DIRECT_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "server/archive/files/file_io.h"

namespace quire {

enum class DirectIo {
  // Through the page cache.
  kOff,
  // Past it where the file system can, which memory and some network file
  // systems cannot.
  kAuto,
  // Past it, or not at all.
  kOn,
};

struct DirectFile {
  UniqueFd fd;
  // What offset, size and memory of a read must be multiples of: a power of two
  // from 1 to kDirectAlignmentBytesMax.
  uint32_t alignment_bytes = 1;
};

// A page: buffers are made of these.
inline constexpr uint32_t kDirectAlignmentBytesMax = 4096;

// Opens `name` in the directory `directory_fd` once more, for reading past the
// page cache, asks the file system for its alignment (statx), and reads once,
// as some find out only then. `file` is its name for messages. Errors:
// FailedPrecondition  this file system cannot; says why.
//         as ErrnoStatus()    it cannot be opened at all.
absl::StatusOr<DirectFile> OpenDirect(int directory_fd, const std::string& name,
                                      absl::string_view file);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_FILES_DIRECT_FILE_H_
