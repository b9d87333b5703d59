// SPDX-License-Identifier: GPL-3.0-or-later
//
// Files by descriptor, with errors that name the file and the system's reason.
#ifndef QUIRE_SERVER_ARCHIVE_FILES_FILE_IO_H_
#define QUIRE_SERVER_ARCHIVE_FILES_FILE_IO_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"
#include "codecs/base/unique_fd.h"

struct stat;

namespace quire {

// "FILE: cannot ACTION: REASON" for the value of errno. NotFound, AlreadyExists
// and PermissionDenied follow the system; everything else, such as a full disk,
// is Unavailable.
absl::Status ErrnoStatus(int error_number, absl::string_view file,
                         absl::string_view action);

// Identity and state of a file: differs if the file was replaced or written,
// even with equal contents.
struct FileIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t size_bytes = 0;
  // Time of the last change.
  int64_t seconds = 0;
  int64_t nanoseconds = 0;

  bool operator==(const FileIdentity&) const = default;
};

// A regular file, open for reading. It stays readable if its name is removed or
// reused. Movable.
struct ReadableFile {
  UniqueFd fd;
  // Path, for messages.
  std::string path;
  // Identity when it was opened.
  FileIdentity identity;

  uint64_t size_bytes() const { return identity.size_bytes; }
};

// Opens `name` in the directory `directory_fd` (or AT_FDCWD). `path` is its
// name for messages.
// Errors: as ErrnoStatus(); DataLoss if it is not a regular file.
absl::StatusOr<ReadableFile> OpenReadableFile(int directory_fd,
                                              const std::string& name,
                                              std::string path);

// Errors: DataLoss  the file does not have `expected_size_bytes`.
absl::Status CheckFileSize(const ReadableFile& file,
                           uint64_t expected_size_bytes);

// Called before `size_bytes` of the file are read; an error ends the reading.
using BeforeRead =
    std::function<absl::Status(int fd, uint64_t offset, uint64_t size_bytes)>;

// Returns the checksum of a part of a file, read in pieces of a quarter MiB.
// Blocks. Errors: as ReadExactly(); those of `before_read`.
absl::StatusOr<uint64_t> ReadChecksum(int fd, uint64_t offset,
                                      uint64_t size_bytes,
                                      absl::string_view file,
                                      const BeforeRead& before_read);

// Time of the last change of a file, in milliseconds since 1970; unset if it is
// not known.
struct FileTime {
  std::optional<int64_t> ms;
};

// Reads files whose bytes are elsewhere, such as sparse copies of objects in a
// store. Thread-safe.
class FileReads {
 public:
  virtual ~FileReads() = default;

  // Like pread(): returns the number of bytes read, 0 at the end of the file.
  // Unset for a file that is read as usual. Blocks.
  virtual std::optional<absl::StatusOr<size_t>> ReadAt(int fd, uint64_t offset,
                                                       MutableByteView out) = 0;

  // Unset for a file that has its time in the file system.
  virtual std::optional<FileTime> ModifiedTime(int fd) = 0;
};

// Sets what reads such files in this process; null for none. `reads` must
// outlive all reads.
void SetFileReads(FileReads* reads);

// Like pread(): returns the number of bytes read, 0 at the end of the file.
// Blocks. Errors: Unavailable.
absl::StatusOr<size_t> ReadAt(int fd, uint64_t offset, MutableByteView out,
                              absl::string_view file);

// Returns FileReads::ModifiedTime(); unset without a FileReads.
std::optional<FileTime> ForeignModifiedTime(int fd);

// Fills `out` from byte `offset` on. Blocks.
// Errors: DataLoss     the file ends before, or the device cannot read it.
//         Unavailable  other errors.
absl::Status ReadExactly(int fd, uint64_t offset, MutableByteView out,
                         absl::string_view file);

// Appends to a new file through a buffer.
// Thread-compatible.
class FileWriter {
 public:
  // Creates `name`, which must not exist, in the directory `directory_fd`.
  static absl::StatusOr<FileWriter> Create(int directory_fd,
                                           const std::string& name,
                                           std::string file);
  // Continues after the first `size_bytes` of an existing file; truncates the
  // rest.
  static absl::StatusOr<FileWriter> Continue(int directory_fd,
                                             const std::string& name,
                                             std::string file,
                                             uint64_t size_bytes);
  // Writes to an unnamed file in `directory`, for text that is read again.
  static absl::StatusOr<FileWriter> CreateUnnamed(const std::string& directory);
  // Errors: Unavailable. After an error every call returns it again.
  absl::Status Append(ByteView bytes);
  // Removes all bytes after the first `size_bytes`.
  // REQUIRES: size_bytes <= size_bytes(). Errors: as Append().
  absl::Status Truncate(uint64_t size_bytes);

  // Writes the buffer to the file, which fd() then has whole.
  absl::Status Flush();
  // Writes the buffer and waits until all data is on the device.
  absl::Status Finish();

  uint64_t size_bytes() const { return size_bytes_; }

  int fd() const { return fd_.get(); }

 private:
  // Takes ownership of `fd`, open for writing at its end.
  FileWriter(UniqueFd fd, std::string file);

  UniqueFd fd_;
  std::string file_;
  std::string buffer_;
  uint64_t size_bytes_ = 0;
  absl::Status status_;
};

// Creates a file without a name in a directory, open for reading and writing.
// Errors: as ErrnoStatus().
absl::StatusOr<UniqueFd> CreateUnnamedFile(const std::string& directory);

// Writes the contents of `from` to `name`, which must not exist, in the
// directory `directory_fd`, and syncs it. `file` is its path for messages;
// `cancel` may be null. Blocks. Errors: as ReadExactly() and FileWriter;
// Cancelled.
absl::Status CopyFile(const ReadableFile& from, int directory_fd,
                      const std::string& name, std::string file,
                      const std::atomic<bool>* cancel);

// Replaces the file `name` of a directory, or creates it: writes NAME.new,
// syncs it, renames it and syncs the directory. NAME.new must be unused.
// Blocks. Errors: as ErrnoStatus().
absl::Status ReplaceFile(const std::string& directory, const std::string& name,
                         absl::string_view text);

// fsync() of a directory, so that its entries survive a crash, or of a file
// that another program wrote.
absl::Status SyncDirectory(int directory_fd, absl::string_view directory);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_FILES_FILE_IO_H_
