// SPDX-License-Identifier: GPL-3.0-or-later
//
// Files by descriptor, with errors that name the file and the system's reason.
#ifndef QUIRE_SERVER_ARCHIVE_FILES_FILE_IO_H_
#define QUIRE_SERVER_ARCHIVE_FILES_FILE_IO_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"

namespace quire {

// Owns a file descriptor. Movable, not copyable.
class UniqueFd {
 public:
  UniqueFd() = default;

  explicit UniqueFd(int fd) : fd_(fd) {}

  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }

  ~UniqueFd();

  int get() const { return fd_; }

  bool is_open() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// "FILE: cannot ACTION: REASON" for the value of errno. NotFound, AlreadyExists
// and PermissionDenied as the system says; everything else, a full disk
// included, is Unavailable.
absl::Status ErrnoStatus(int error_number, absl::string_view file,
                         absl::string_view action);

// Which file on which device, and in what state: differs whenever the file was
// replaced or written to, even with equal contents.
struct FileIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t size_bytes = 0;
  // Of the last change.
  int64_t seconds = 0;
  int64_t nanoseconds = 0;

  bool operator==(const FileIdentity&) const = default;
};

// A regular file, open for reading. What was opened stays readable when its
// name is removed or comes to mean another file. Movable.
struct ReadableFile {
  UniqueFd fd;
  // Path, for messages.
  std::string path;
  // As it was when it was opened.
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
  // Goes on behind the first `size_bytes` of a file that is there; the rest of
  // it is dropped.
  static absl::StatusOr<FileWriter> Continue(int directory_fd,
                                             const std::string& name,
                                             std::string file,
                                             uint64_t size_bytes);
  // Errors: Unavailable. After an error every call returns it again.
  absl::Status Append(ByteView bytes);

  // Writes what is buffered and waits until all is on the device.
  absl::Status Finish();

  uint64_t size_bytes() const { return size_bytes_; }

  int fd() const { return fd_.get(); }

 private:
  // Takes over `fd`, open for writing at its end.
  FileWriter(UniqueFd fd, std::string file);
  absl::Status Flush();

  UniqueFd fd_;
  std::string file_;
  std::string buffer_;
  uint64_t size_bytes_ = 0;
  absl::Status status_;
};

// fsync() of a directory, so that its entries survive a crash.
absl::Status SyncDirectory(int directory_fd, absl::string_view directory);

// Asks the kernel to back memory that is read at random, such as a dictionary,
// with huge pages: the part of `bytes` that consists of whole ones, at once
// where Linux can (6.1), else when it gets to it. Nothing changes where
// transparent huge pages are off or none are free. The contents do not change,
// and the memory does not grow.
void PreferHugePages(MutableByteView bytes);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_FILES_FILE_IO_H_
