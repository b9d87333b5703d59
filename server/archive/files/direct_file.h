// SPDX-License-Identifier: GPL-3.0-or-later
//
// Files read past the page cache (O_DIRECT). A server has its own bounded
// cache. A second one in the kernel would hold the same blocks in stored form,
// read ahead needlessly in a batch, and evict pages that others need.
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
  // Past it if the file system supports that; memory and some network file
  // systems do not.
  kAuto,
  // Past it, or fail.
  kOn,
};

struct DirectFile {
  UniqueFd fd;
  // Alignment of offset, size and memory of a read: a power of two from 1 to
  // kDirectAlignmentBytesMax.
  uint32_t alignment_bytes = 1;
};

// A page: the unit of buffers.
inline constexpr uint32_t kDirectAlignmentBytesMax = 4096;

// Opens `name` in the directory `directory_fd` again for reading past the page
// cache. Asks the file system for its alignment (statx), and reads once, as
// some file systems fail only then. `file` is its name for messages.
// Errors: FailedPrecondition  not supported by this file system; says why.
//         as ErrnoStatus()    it cannot be opened at all.
absl::StatusOr<DirectFile> OpenDirect(int directory_fd, const std::string& name,
                                      absl::string_view file);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_FILES_DIRECT_FILE_H_
