// SPDX-License-Identifier: GPL-3.0-or-later
//
// Unnamed files for text that is read more than once: standard input, and the
// targets of hard links in compressed tars.
#ifndef QUIRE_SERVER_INGEST_SOURCES_SPOOL_H_
#define QUIRE_SERVER_INGEST_SOURCES_SPOOL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "server/archive/files/file_io.h"
#include "server/ingest/sources/streams/byte_stream.h"

namespace quire {

// An unnamed file. It disappears with the last user of Finish()'s result, or
// when the process ends in any way. Movable. Thread-compatible.
class Spool {
 public:
  // `what` names the contents, for messages.
  // Errors: Unavailable  the directory cannot hold it.
  static absl::StatusOr<Spool> Create(const std::string& directory,
                                      std::string what);

  // Appends `bytes`; a piece of zeros takes no space on disk.
  // Errors: Unavailable  no space is left in the directory.
  absl::Status Append(ByteView bytes);

  uint64_t size_bytes() const { return size_bytes_; }

  // Fills `out` from offset `offset` of the appended bytes.
  // REQUIRES: offset + out.size() <= size_bytes().
  // Errors: Unavailable  the file cannot be read, or became shorter.
  absl::Status ReadAt(uint64_t offset, MutableByteView out) const;

  // Returns the file for reading. `name` is for messages. Errors: as Append().
  absl::StatusOr<std::shared_ptr<const InputFile>> Finish(std::string name) &&;

 private:
  Spool(UniqueFd fd, std::string directory, std::string what)
      : fd_(std::move(fd)),
        directory_(std::move(directory)),
        what_(std::move(what)) {}

  UniqueFd fd_;
  std::string directory_;
  std::string what_;
  uint64_t size_bytes_ = 0;
};

// Returns the spool directory for an archive at `archive_path`: its parent
// directory.
std::string SpoolDirectoryFor(std::string archive_path);

// Copies the rest of `fd`. Blocks until the input ends, also for a non-blocking
// `fd`. `name` is for messages.
// Errors: Unavailable        the input cannot be read, or as Spool.
//         ResourceExhausted  more than `size_bytes_max`.
absl::StatusOr<std::shared_ptr<const InputFile>> SpoolToUnnamedFile(
    int fd, const std::string& name, const std::string& directory,
    uint64_t size_bytes_max);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_SPOOL_H_
