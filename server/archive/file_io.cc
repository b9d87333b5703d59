// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/file_io.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"

namespace quire {
namespace {

constexpr size_t kBufferSizeBytes = size_t{1} << 20;

absl::StatusCode CodeOf(int error_number) {
  switch (error_number) {
    case ENOENT:
      return absl::StatusCode::kNotFound;
    case EEXIST:
    case ENOTEMPTY:
      return absl::StatusCode::kAlreadyExists;
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::StatusCode::kPermissionDenied;
    default:
      return absl::StatusCode::kUnavailable;
  }
}

absl::Status WriteAll(int fd, ByteView bytes, absl::string_view file) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written < 0) {
      return ErrnoStatus(errno, file, "write");
    }
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

}  // namespace

UniqueFd::~UniqueFd() {
  if (fd_ >= 0) {
    close(fd_);
  }
}

absl::Status ErrnoStatus(int error_number, absl::string_view file,
                         absl::string_view verb) {
  return absl::Status(
      CodeOf(error_number),
      absl::StrCat(file, ": cannot ", verb, ": ",
                   std::generic_category().message(error_number)));
}

absl::StatusOr<UniqueFd> OpenForReading(int folder_fd, const std::string& name,
                                        absl::string_view file) {
  // O_NONBLOCK: opening a fifo that was put in a file's place must not hang.
  UniqueFd fd(openat(folder_fd, name.c_str(),
                     O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!fd.is_open()) {
    return ErrnoStatus(errno, file, "open");
  }
  return fd;
}

absl::StatusOr<UniqueFd> OpenPartForReading(int folder_fd,
                                            const std::string& name,
                                            absl::string_view file) {
  absl::StatusOr<UniqueFd> fd = OpenForReading(folder_fd, name, file);
  if (absl::IsNotFound(fd.status())) {
    return absl::DataLossError(
        absl::StrCat(file, ": is missing; restore it from a copy"));
  }
  return fd;
}

absl::StatusOr<uint64_t> FileSizeBytes(int fd, absl::string_view file) {
  struct stat status;
  if (fstat(fd, &status) != 0) {
    return ErrnoStatus(errno, file, "stat");
  }
  if (!S_ISREG(status.st_mode)) {
    return absl::DataLossError(absl::StrCat(file, ": is not a regular file"));
  }
  return static_cast<uint64_t>(status.st_size);
}

absl::Status ReadExactly(int fd, uint64_t offset, MutableByteView out,
                         absl::string_view file) {
  while (!out.empty()) {
    const ssize_t size =
        pread(fd, out.data(), out.size(), static_cast<off_t>(offset));
    if (size < 0 && errno == EINTR) {
      continue;
    }
    if (size < 0 && errno == EIO) {
      return absl::DataLossError(absl::StrCat(
          file, ": the device cannot read it at byte ", offset,
          ": replace the device and restore the file from a copy"));
    }
    if (size < 0) {
      return ErrnoStatus(errno, file, "read");
    }
    if (size == 0) {
      return absl::DataLossError(
          absl::StrCat(file, ": ends at byte ", offset, ", expected ",
                       out.size(), " more; restore the file from a copy"));
    }
    offset += static_cast<uint64_t>(size);
    out = out.subspan(static_cast<size_t>(size));
  }
  return absl::OkStatus();
}

absl::StatusOr<FileWriter> FileWriter::Create(int folder_fd,
                                              const std::string& name,
                                              std::string file) {
  UniqueFd fd(openat(folder_fd, name.c_str(),
                     O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd.is_open()) {
    return ErrnoStatus(errno, file, "create");
  }
  return FileWriter(std::move(fd), std::move(file));
}

FileWriter::FileWriter(UniqueFd fd, std::string file)
    : fd_(std::move(fd)), file_(std::move(file)) {}

absl::Status FileWriter::Append(ByteView bytes) {
  QUIRE_RETURN_IF_ERROR(status_);
  size_bytes_ += bytes.size();
  while (!bytes.empty()) {
    const size_t size =
        std::min(bytes.size(), kBufferSizeBytes - buffer_.size());
    buffer_.append(AsText(bytes).data(), size);
    bytes = bytes.subspan(size);
    if (buffer_.size() == kBufferSizeBytes) {
      QUIRE_RETURN_IF_ERROR(Flush());
    }
  }
  return absl::OkStatus();
}

absl::Status FileWriter::Flush() {
  status_ = WriteAll(fd_.get(), AsBytes(buffer_), file_);
  buffer_.clear();
  return status_;
}

absl::Status FileWriter::Finish() {
  QUIRE_RETURN_IF_ERROR(status_);
  QUIRE_RETURN_IF_ERROR(Flush());
  if (fsync(fd_.get()) != 0) {
    status_ = ErrnoStatus(errno, file_, "sync");
  }
  return status_;
}

absl::Status SyncFolder(int folder_fd, absl::string_view folder) {
  if (fsync(folder_fd) != 0) {
    return ErrnoStatus(errno, folder, "sync");
  }
  return absl::OkStatus();
}

}  // namespace quire
