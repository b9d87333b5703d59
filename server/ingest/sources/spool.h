// SPDX-License-Identifier: GPL-3.0-or-later
//
// Files without a name for text that is read more than once: standard input,
// and the targets of hard links in compressed tars.
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
#include "server/ingest/sources/byte_stream.h"

namespace quire {

// A file without a name, which disappears with the last user of what Finish()
// returns, or with the process, however it ends.
// Movable. Thread-compatible.
class Spool {
 public:
  // `what` is what will be copied, for messages.
  // Errors: Unavailable  the directory cannot hold it.
  static absl::StatusOr<Spool> Create(const std::string& directory,
                                      std::string what);

  // Appends `bytes`; a piece of zeros takes no space on disk.
  // Errors: Unavailable  no space is left in the directory.
  absl::Status Append(ByteView bytes);

  uint64_t size_bytes() const { return size_bytes_; }

  // Fills `out` with what was appended at `offset`.
  // REQUIRES: offset + out.size() <= size_bytes().
  // Errors: Unavailable  the file cannot be read, or became shorter.
  absl::Status ReadAt(uint64_t offset, MutableByteView out) const;

  // For reading. `name` is for messages. Errors: as Append().
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

// Returns the directory for spools of the archive that is to be at
// `archive_path`: the one that the archive lies in.
std::string SpoolDirectoryFor(std::string archive_path);

// Copies all that `fd` still has. Blocks until the input ends, also if `fd`
// does not block. `name` is for messages.
// Errors: Unavailable        the input cannot be read, or as Spool.
//         ResourceExhausted  there is more than `size_bytes_max`.
absl::StatusOr<std::shared_ptr<const InputFile>> SpoolToUnnamedFile(
    int fd, const std::string& name, const std::string& directory,
    uint64_t size_bytes_max);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_SPOOL_H_
