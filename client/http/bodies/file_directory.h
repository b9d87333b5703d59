// SPDX-License-Identifier: Apache-2.0
//
// The files of `quire-http --files DIR`: those directly in one directory.
#ifndef QUIRE_CLIENT_HTTP_BODIES_FILE_DIRECTORY_H_
#define QUIRE_CLIENT_HTTP_BODIES_FILE_DIRECTORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "client/http/bodies/byte_store.h"
#include "codecs/base/unique_fd.h"

namespace quire {

// Suffix of the file that describes pieces; see piece_list.h.
inline constexpr absl::string_view kPieceListSuffix = ".pieces.json";

// True for 1 to 255 bytes without `/` and NUL, other than "." and "..".
// Thread-safe.
bool IsFileName(absl::string_view name);

// True for names that requests may use: IsFileName(), no leading dot, and not a
// description of pieces. Thread-safe.
bool IsServedName(absl::string_view name);

// State of a file: differs if the file was replaced or written.
struct FileVersion {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t size_bytes = 0;
  // Time of the last write.
  int64_t seconds = 0;
  int64_t nanoseconds = 0;

  bool operator==(const FileVersion&) const = default;
};

// Thread-safe.
class FileDirectory {
 public:
  // Errors: FailedPrecondition  not a directory, or not readable.
  static absl::StatusOr<std::unique_ptr<FileDirectory>> Open(
      const std::string& path);

  // REQUIRES here and below: IsFileName(name).
  // Errors: NotFound           no regular file has this name; symbolic links
  //                            are not followed.
  //         PermissionDenied   it is not readable.
  //         ResourceExhausted  no descriptor is free.
  //         DataLoss           other errors of the system.
  absl::StatusOr<FileVersion> Find(const std::string& name) const;

  // Reads 1 to `size_bytes` bytes of the file while it has this version.
  // Errors: as Find(); DataLoss  it was replaced or written.
  absl::StatusOr<std::string> Read(const std::string& name,
                                   const FileVersion& version, uint64_t offset,
                                   size_t size_bytes) const;

 private:
  explicit FileDirectory(UniqueFd directory)
      : directory_(std::move(directory)) {}

  absl::StatusOr<UniqueFd> OpenFile(const std::string& name,
                                    FileVersion& version) const;

  const UniqueFd directory_;
};

// A version of a file. Holds no descriptor between reads.
class FileBytes final : public ByteStore {
 public:
  // `directory` must outlive it.
  FileBytes(const FileDirectory* directory, std::string name,
            const FileVersion& version)
      : directory_(directory), name_(std::move(name)), version_(version) {}

  uint64_t size_bytes() const override { return version_.size_bytes; }

  absl::StatusOr<std::string> Read(uint64_t offset,
                                   size_t size_bytes) override {
    return directory_->Read(name_, version_, offset, size_bytes);
  }

 private:
  const FileDirectory* const directory_;
  const std::string name_;
  const FileVersion version_;
};

// Media type for a file's name. Thread-safe.
const char* FileMediaType(absl::string_view name);

}  // namespace quire

#endif  // QUIRE_CLIENT_HTTP_BODIES_FILE_DIRECTORY_H_
