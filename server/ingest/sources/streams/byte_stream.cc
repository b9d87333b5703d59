// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/streams/byte_stream.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/status_macros.h"
#include "server/ingest/sources/input_limits.h"

namespace quire {

absl::StatusOr<uint64_t> ByteStream::Skip(uint64_t size_bytes) {
  return SkipByReading(*this, size_bytes);
}

InputFile::InputFile(UniqueFd fd, std::string name)
    : fd_(std::move(fd)), name_(std::move(name)) {}

absl::StatusOr<std::shared_ptr<const InputFile>> InputFile::Open(
    const std::string& path) {
  // Non-blocking: a pipe may never have a writer.
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.is_open()) {
    return ErrnoStatus(errno, path, "open");
  }
  struct stat status = {};
  if (fstat(fd.get(), &status) != 0) {
    return ErrnoStatus(errno, path, "look at");
  }
  if (!S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(
        path,
        ": is neither a regular file nor a directory, and an input is read ",
        "several times; to build from a pipe, give - as the input and a tar on "
        "standard input"));
  }
  return std::make_shared<const InputFile>(std::move(fd), path);
}

absl::StatusOr<uint64_t> InputFile::SizeBytes() const {
  struct stat status = {};
  if (fstat(fd_.get(), &status) != 0) {
    return ErrnoStatus(errno, name_, "look at");
  }
  return static_cast<uint64_t>(status.st_size);
}

absl::StatusOr<std::optional<int64_t>> InputFile::ModifiedTimeMs() const {
  if (const auto foreign = ForeignModifiedTime(fd_.get());
      foreign.has_value()) {
    return foreign->ms;
  }
  struct stat status = {};
  if (fstat(fd_.get(), &status) != 0) {
    return ErrnoStatus(errno, name_, "look at");
  }
  return std::optional(int64_t{status.st_mtim.tv_sec} * 1000);
}

absl::StatusOr<size_t> InputFile::ReadAt(uint64_t offset,
                                         MutableByteView out) const {
  return quire::ReadAt(fd_.get(), offset, out, name_);
}

FileStream::FileStream(std::shared_ptr<const InputFile> file, uint64_t offset,
                       uint64_t end_offset)
    : file_(std::move(file)), offset_(offset), end_offset_(end_offset) {}

absl::StatusOr<size_t> FileStream::Read(MutableByteView out) {
  const uint64_t rest = offset_ < end_offset_ ? end_offset_ - offset_ : 0;
  QUIRE_ASSIGN_OR_RETURN(
      const size_t got,
      file_->ReadAt(offset_, out.first(static_cast<size_t>(
                                 std::min<uint64_t>(out.size(), rest)))));
  offset_ += got;
  return got;
}

absl::StatusOr<uint64_t> FileStream::Skip(uint64_t size_bytes) {
  QUIRE_ASSIGN_OR_RETURN(const uint64_t file_size_bytes, file_->SizeBytes());
  const uint64_t end = std::min(file_size_bytes, end_offset_);
  const uint64_t rest = offset_ < end ? end - offset_ : 0;
  const uint64_t skipped = std::min(size_bytes, rest);
  offset_ += skipped;
  return skipped;
}

absl::Status CheckNotCut(const InputFile& file, uint64_t size_bytes,
                         uint64_t offset) {
  return offset >= size_bytes
             ? absl::OkStatus()
             : absl::UnavailableError(
                   absl::StrCat(file.name(), ": had ",
                                FormatCounted(size_bytes, "byte", "bytes"),
                                " when its reading began, and now ends after ",
                                FormatCount(offset),
                                "; do not change the input during a build"));
}

absl::StatusOr<size_t> MemoryStream::Read(MutableByteView out) {
  const size_t size = std::min({out.size(), rest_.size(), read_size_max_});
  std::copy_n(rest_.begin(), size, out.begin());
  rest_ = rest_.subspan(size);
  return size;
}

absl::StatusOr<size_t> BoundedStream::Read(MutableByteView out) {
  QUIRE_ASSIGN_OR_RETURN(const size_t got, stream_->Read(out));
  read_bytes_ += got;
  if (read_bytes_ > size_bytes_max_) {
    return InputTooLarge(absl::StrCat(name_, ": decompresses to more"),
                         size_bytes_max_);
  }
  return got;
}

absl::StatusOr<size_t> ReadFully(ByteStream& stream, MutableByteView out) {
  size_t filled = 0;
  while (filled < out.size()) {
    QUIRE_ASSIGN_OR_RETURN(const size_t got, stream.Read(out.subspan(filled)));
    if (got == 0) {
      break;
    }
    filled += got;
  }
  return filled;
}

}  // namespace quire
