// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/files/file_io.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/checksum.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

constexpr size_t kBufferSizeBytes = size_t{1} << 20;

std::atomic<FileReads*> file_reads = nullptr;

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

absl::Status ErrnoStatus(int error_number, absl::string_view file,
                         absl::string_view action) {
  return absl::Status(
      CodeOf(error_number),
      absl::StrCat(file, ": cannot ", action, ": ",
                   std::generic_category().message(error_number)));
}

absl::StatusOr<ReadableFile> OpenReadableFile(int directory_fd,
                                              const std::string& name,
                                              std::string path) {
  ReadableFile file;
  file.path = std::move(path);
  // O_NONBLOCK: opening a fifo in place of a file must not hang.
  file.fd = UniqueFd(openat(directory_fd, name.c_str(),
                            O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!file.fd.is_open()) {
    return ErrnoStatus(errno, file.path, "open");
  }
  struct stat status;
  if (fstat(file.fd.get(), &status) != 0) {
    return ErrnoStatus(errno, file.path, "stat");
  }
  if (!S_ISREG(status.st_mode)) {
    return absl::DataLossError(
        absl::StrCat(file.path, ": is not a regular file"));
  }
  file.identity = {.device = status.st_dev,
                   .inode = status.st_ino,
                   .size_bytes = static_cast<uint64_t>(status.st_size),
                   .seconds = status.st_mtim.tv_sec,
                   .nanoseconds = status.st_mtim.tv_nsec};
  return file;
}

absl::Status CheckFileSize(const ReadableFile& file,
                           uint64_t expected_size_bytes) {
  if (file.size_bytes() == expected_size_bytes) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat(
      file.path, ": is ", file.size_bytes(), " bytes long, expected ",
      expected_size_bytes, "; restore the file from a copy"));
}

absl::StatusOr<uint64_t> ReadChecksum(int fd, uint64_t offset,
                                      uint64_t size_bytes,
                                      absl::string_view file,
                                      const BeforeRead& before_read) {
  constexpr uint64_t kPieceSizeBytes = uint64_t{256} << 10;
  Checksummer64 checksum;
  std::vector<uint8_t> piece;
  for (uint64_t done = 0; done < size_bytes; done += piece.size()) {
    piece.resize(std::min(kPieceSizeBytes, size_bytes - done));
    QUIRE_RETURN_IF_ERROR(before_read(fd, offset + done, piece.size()));
    QUIRE_RETURN_IF_ERROR(ReadExactly(fd, offset + done, piece, file));
    checksum.Add(piece);
  }
  return checksum.Get();
}

void SetFileReads(FileReads* reads) {
  file_reads = reads;
}

namespace {

// Reads as pread() does. `lost` makes the error of a device that cannot read.
absl::StatusOr<size_t> ReadSome(
    int fd, uint64_t offset, MutableByteView out, absl::string_view file,
    absl::FunctionRef<absl::Status(uint64_t offset)> lost) {
  if (FileReads* const reads = file_reads; reads != nullptr) {
    if (auto read = reads->ReadAt(fd, offset, out); read.has_value()) {
      return *std::move(read);
    }
  }
  while (true) {
    const ssize_t size =
        pread(fd, out.data(), out.size(), static_cast<off_t>(offset));
    if (size >= 0) {
      return static_cast<size_t>(size);
    }
    if (errno == EIO) {
      return lost(offset);
    }
    if (errno != EINTR) {
      return ErrnoStatus(errno, file, "read");
    }
  }
}

}  // namespace

absl::StatusOr<size_t> ReadAt(int fd, uint64_t offset, MutableByteView out,
                              absl::string_view file) {
  return ReadSome(fd, offset, out, file, [file](uint64_t /*offset*/) {
    return ErrnoStatus(EIO, file, "read");
  });
}

std::optional<FileTime> ForeignModifiedTime(int fd) {
  FileReads* const reads = file_reads;
  return reads == nullptr ? std::nullopt : reads->ModifiedTime(fd);
}

absl::Status ReadExactly(int fd, uint64_t offset, MutableByteView out,
                         absl::string_view file) {
  while (!out.empty()) {
    QUIRE_ASSIGN_OR_RETURN(
        const size_t size,
        ReadSome(fd, offset, out, file, [file](uint64_t lost_at) {
          return absl::DataLossError(absl::StrCat(
              file, ": the device cannot read it at byte ", lost_at,
              ": replace the device and restore the file from a copy"));
        }));
    if (size == 0) {
      return absl::DataLossError(
          absl::StrCat(file, ": ends at byte ", offset, ", expected ",
                       out.size(), " more; restore the file from a copy"));
    }
    offset += size;
    out = out.subspan(size);
  }
  return absl::OkStatus();
}

absl::StatusOr<UniqueFd> CreateUnnamedFile(const std::string& directory) {
  UniqueFd fd(open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (fd.is_open()) {
    return fd;
  }
  if (errno != EOPNOTSUPP && errno != EISDIR) {
    return ErrnoStatus(errno, directory, "create a temporary file in");
  }
  // NFS and some others lack unnamed files: use a name briefly.
  std::string path = absl::StrCat(directory, "/.quire-spool-XXXXXX");
  UniqueFd named(mkostemp(path.data(), O_CLOEXEC));
  if (!named.is_open() || unlink(path.c_str()) != 0) {
    return ErrnoStatus(errno, directory, "create a temporary file in");
  }
  return named;
}

absl::StatusOr<FileWriter> FileWriter::Create(int directory_fd,
                                              const std::string& name,
                                              std::string file) {
  UniqueFd fd(openat(directory_fd, name.c_str(),
                     O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd.is_open()) {
    return ErrnoStatus(errno, file, "create");
  }
  return FileWriter(std::move(fd), std::move(file));
}

absl::StatusOr<FileWriter> FileWriter::Continue(int directory_fd,
                                                const std::string& name,
                                                std::string file,
                                                uint64_t size_bytes) {
  UniqueFd fd(
      openat(directory_fd, name.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC));
  const auto end = static_cast<off_t>(size_bytes);
  if (!fd.is_open() || ftruncate(fd.get(), end) != 0 ||
      lseek(fd.get(), end, SEEK_SET) != end) {
    return ErrnoStatus(errno, file, "continue");
  }
  FileWriter writer(std::move(fd), std::move(file));
  writer.size_bytes_ = size_bytes;
  return writer;
}

absl::StatusOr<FileWriter> FileWriter::CreateUnnamed(
    const std::string& directory) {
  QUIRE_ASSIGN_OR_RETURN(UniqueFd fd, CreateUnnamedFile(directory));
  return FileWriter(std::move(fd),
                    absl::StrCat(directory, ": a temporary file"));
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

absl::Status FileWriter::Truncate(uint64_t size_bytes) {
  QUIRE_RETURN_IF_ERROR(status_);
  const uint64_t flushed_size_bytes = size_bytes_ - buffer_.size();
  size_bytes_ = size_bytes;
  if (size_bytes >= flushed_size_bytes) {
    buffer_.resize(static_cast<size_t>(size_bytes - flushed_size_bytes));
    return absl::OkStatus();
  }
  buffer_.clear();
  const auto end = static_cast<off_t>(size_bytes);
  if (ftruncate(fd_.get(), end) != 0 ||
      lseek(fd_.get(), end, SEEK_SET) != end) {
    status_ = ErrnoStatus(errno, file_, "truncate");
  }
  return status_;
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

absl::Status CopyFile(const ReadableFile& from, int directory_fd,
                      const std::string& name, std::string file,
                      const std::atomic<bool>* cancel) {
  QUIRE_ASSIGN_OR_RETURN(
      FileWriter writer,
      FileWriter::Create(directory_fd, name, std::move(file)));
  std::vector<uint8_t> piece;
  while (writer.size_bytes() < from.size_bytes()) {
    if (cancel != nullptr && *cancel) {
      return absl::CancelledError(
          absl::StrCat(from.path, ": copying it was interrupted"));
    }
    piece.resize(std::min<uint64_t>(kBufferSizeBytes,
                                    from.size_bytes() - writer.size_bytes()));
    QUIRE_RETURN_IF_ERROR(
        ReadExactly(from.fd.get(), writer.size_bytes(), piece, from.path));
    QUIRE_RETURN_IF_ERROR(writer.Append(piece));
  }
  return writer.Finish();
}

absl::Status ReplaceFile(const std::string& directory, const std::string& name,
                         absl::string_view text) {
  const UniqueFd fd(
      open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.is_open()) {
    return ErrnoStatus(errno, directory, "open the directory");
  }
  const std::string aside = absl::StrCat(name, ".new");
  const std::string path = absl::StrCat(directory, "/", aside);
  if (unlinkat(fd.get(), aside.c_str(), 0) != 0 && errno != ENOENT) {
    return ErrnoStatus(errno, path, "remove");
  }
  QUIRE_ASSIGN_OR_RETURN(FileWriter writer,
                         FileWriter::Create(fd.get(), aside, path));
  QUIRE_RETURN_IF_ERROR(writer.Append(AsBytes(text)));
  QUIRE_RETURN_IF_ERROR(writer.Finish());
  if (renameat(fd.get(), aside.c_str(), fd.get(), name.c_str()) != 0) {
    return ErrnoStatus(errno, path, "rename");
  }
  return SyncDirectory(fd.get(), directory);
}

absl::Status SyncDirectory(int directory_fd, absl::string_view directory) {
  if (fsync(directory_fd) != 0) {
    return ErrnoStatus(errno, directory, "sync");
  }
  return absl::OkStatus();
}

}  // namespace quire
