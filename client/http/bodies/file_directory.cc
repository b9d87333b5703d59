// SPDX-License-Identifier: Apache-2.0
#include "client/http/bodies/file_directory.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "client/http/bodies/file_reads.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

constexpr size_t kFileNameSizeMax = 255;

absl::Status FileFault(int error, const std::string& name) {
  const std::string text =
      absl::StrCat("file ", QuotedText({name.data(), name.size()}), ": ",
                   std::generic_category().message(error));
  switch (error) {
    case ENOENT:
    case ELOOP:
    case ENAMETOOLONG:
    case ENOTDIR:
    case ENXIO:
      return absl::NotFoundError(text);
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(text);
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return absl::ResourceExhaustedError(text);
    default:
      return absl::DataLossError(text);
  }
}

FileVersion VersionOf(const struct stat& info) {
  return {.device = info.st_dev,
          .inode = info.st_ino,
          .size_bytes = static_cast<uint64_t>(info.st_size),
          .seconds = info.st_mtim.tv_sec,
          .nanoseconds = info.st_mtim.tv_nsec};
}

}  // namespace

bool IsFileName(absl::string_view name) {
  return !name.empty() && name.size() <= kFileNameSizeMax && name != "." &&
         name != ".." && name.find('/') == absl::string_view::npos &&
         name.find('\0') == absl::string_view::npos;
}

bool IsServedName(absl::string_view name) {
  return IsFileName(name) && name.front() != '.' &&
         !absl::EndsWith(name, kPieceListSuffix);
}

const char* FileMediaType(absl::string_view name) {
  static constexpr std::pair<absl::string_view, const char*> kTypes[] = {
      {".wacz", "application/wacz"},
      {".warc", "application/warc"},
      {".gz", "application/gzip"},
      {".json", "application/json"},
      {".cdxj", "text/plain; charset=utf-8"},
      {".txt", "text/plain; charset=utf-8"}};
  for (const auto& [suffix, type] : kTypes) {
    if (absl::EndsWith(name, suffix)) {
      return type;
    }
  }
  return "application/octet-stream";
}

absl::StatusOr<std::unique_ptr<FileDirectory>> FileDirectory::Open(
    const std::string& path) {
  UniqueFd directory(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.is_open()) {
    return absl::FailedPreconditionError(
        absl::StrCat("--files ", path, ": cannot open the directory: ",
                     std::generic_category().message(errno)));
  }
  return absl::WrapUnique(new FileDirectory(std::move(directory)));
}

absl::StatusOr<UniqueFd> FileDirectory::OpenFile(const std::string& name,
                                                 FileVersion& version) const {
  // O_NONBLOCK: a pipe would wait for a writer.
  UniqueFd file(
      openat(directory_.get(), name.c_str(),
             O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (!file.is_open()) {
    return FileFault(errno, name);
  }

  struct stat info {};

  if (fstat(file.get(), &info) != 0) {
    return FileFault(errno, name);
  }
  if (!S_ISREG(info.st_mode)) {
    return FileFault(ENOENT, name);
  }
  version = VersionOf(info);
  return file;
}

absl::StatusOr<FileVersion> FileDirectory::Find(const std::string& name) const {
  FileVersion version;
  QUIRE_RETURN_IF_ERROR(OpenFile(name, version).status());
  return version;
}

absl::StatusOr<std::string> FileDirectory::Read(const std::string& name,
                                                const FileVersion& version,
                                                uint64_t offset,
                                                size_t size_bytes) const {
  FileVersion current;
  absl::StatusOr<UniqueFd> file = OpenFile(name, current);
  if (absl::IsNotFound(file.status()) || (file.ok() && current != version)) {
    return absl::DataLossError(
        absl::StrCat("file ", QuotedText({name.data(), name.size()}),
                     " was replaced or written while it was read"));
  }
  QUIRE_RETURN_IF_ERROR(file.status());
  std::string bytes;
  const int error = ReadFileAt(file->get(), offset, size_bytes, bytes);
  if (error != 0) {
    return FileFault(error, name);
  }
  if (bytes.empty()) {
    return absl::DataLossError(
        absl::StrCat("file ", QuotedText({name.data(), name.size()}),
                     " became shorter while it was read"));
  }
  return bytes;
}

}  // namespace quire
