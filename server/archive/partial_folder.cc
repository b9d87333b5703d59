// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/partial_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "server/archive/archive_format.h"

namespace quire {
namespace {

// Rounds of "someone else removed the folder just now" before giving up.
constexpr int kAcquireAttemptsMax = 100;

struct CloseFolder {
  void operator()(DIR* folder) const { closedir(folder); }
};

// Names in the folder, without "." and "..".
absl::StatusOr<std::vector<std::string>> ListFolder(int folder_fd,
                                                    absl::string_view name) {
  // A descriptor of its own: fdopendir() takes it over, and its position.
  const int fd = openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) {
    return ErrnoStatus(errno, name, "open");
  }
  const std::unique_ptr<DIR, CloseFolder> folder(fdopendir(fd));
  if (folder == nullptr) {
    close(fd);
    return ErrnoStatus(errno, name, "list");
  }
  std::vector<std::string> names;
  while (true) {
    errno = 0;
    // The stream is this function's own, so readdir() is thread-safe.
    const dirent* entry =
        readdir(folder.get());  // NOLINT(concurrency-mt-unsafe)
    if (entry == nullptr) {
      break;
    }
    const absl::string_view entry_name = entry->d_name;
    if (entry_name != "." && entry_name != "..") {
      names.emplace_back(entry_name);
    }
  }
  if (errno != 0) {
    return ErrnoStatus(errno, name, "list");
  }
  return names;
}

absl::Status CheckHoldsOnlyArchiveFiles(int folder_fd, absl::string_view name) {
  QUIRE_ASSIGN_OR_RETURN(const std::vector<std::string> entries,
                         ListFolder(folder_fd, name));
  for (const std::string& entry : entries) {
    if (!IsArchiveFileName(entry)) {
      return absl::AlreadyExistsError(
          absl::StrCat(name, ": holds \"", entry,
                       "\", which is no file of an archive; move it away"));
    }
  }
  return absl::OkStatus();
}

// MANIFEST goes last: it carries the lock.
absl::Status RemoveArchiveFiles(int folder_fd, absl::string_view name,
                                bool manifest_too) {
  QUIRE_ASSIGN_OR_RETURN(const std::vector<std::string> entries,
                         ListFolder(folder_fd, name));
  for (const std::string& entry : entries) {
    if (entry != kManifestFileName && IsArchiveFileName(entry) &&
        unlinkat(folder_fd, entry.c_str(), 0) != 0 && errno != ENOENT) {
      return ErrnoStatus(errno, absl::StrCat(name, "/", entry), "remove");
    }
  }
  if (manifest_too && unlinkat(folder_fd, kManifestFileName, 0) != 0 &&
      errno != ENOENT) {
    return ErrnoStatus(errno, absl::StrCat(name, "/", kManifestFileName),
                       "remove");
  }
  return absl::OkStatus();
}

absl::Status Lock(int fd, absl::string_view name) {
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
    return absl::OkStatus();
  }
  if (errno == EWOULDBLOCK) {
    return absl::FailedPreconditionError(absl::StrCat(
        name, ": another writer is at work here; wait until it has ended"));
  }
  return ErrnoStatus(errno, name, "lock");
}

bool SameFile(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// PATH in a form that ends with a name.
absl::StatusOr<std::string> Trim(std::string path) {
  while (path.size() > 1 && path.back() == '/') {
    path.pop_back();
  }
  const size_t slash = path.rfind('/');
  const std::string base =
      slash == std::string::npos ? path : path.substr(slash + 1);
  if (base.empty() || base == "." || base == "..") {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", path, "\" is no name for a new archive; give it one, such as ",
        "name.quire"));
  }
  if (path.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError("the archive's path contains a NUL");
  }
  return path;
}

// Whether `base_name` may be written: true if it is an archive to be replaced,
// false if nothing is there.
absl::StatusOr<bool> CheckPlace(int parent_fd, const std::string& base_name,
                                const std::string& path, bool replace) {
  struct stat status;
  if (fstatat(parent_fd, base_name.c_str(), &status, AT_SYMLINK_NOFOLLOW) !=
      0) {
    if (errno == ENOENT) {
      return false;
    }
    return ErrnoStatus(errno, path, "stat");
  }
  if (!S_ISDIR(status.st_mode)) {
    return absl::AlreadyExistsError(
        absl::StrCat(path, ": is there and is no folder; move it away"));
  }
  const UniqueFd folder(
      openat(parent_fd, base_name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.is_open()) {
    return ErrnoStatus(errno, path, "open");
  }
  if (fstatat(folder.get(), kManifestFileName, &status, 0) != 0) {
    return absl::AlreadyExistsError(
        absl::StrCat(path, ": is a folder, but not an archive; move it away"));
  }
  if (!replace) {
    return absl::AlreadyExistsError(
        absl::StrCat(path, ": an archive is there already"));
  }
  QUIRE_RETURN_IF_ERROR(CheckHoldsOnlyArchiveFiles(folder.get(), path));
  return true;
}

}  // namespace

absl::StatusOr<PartialFolder> PartialFolder::Create(const std::string& path,
                                                    bool replace) {
  PartialFolder folder;
  QUIRE_ASSIGN_OR_RETURN(folder.path_, Trim(path));
  folder.replace_ = replace;
  folder.name_ = folder.path_ + ".partial";
  const size_t slash = folder.path_.rfind('/');
  const std::string parent =
      slash == std::string::npos ? "." : folder.path_.substr(0, slash + 1);
  folder.base_name_ = slash == std::string::npos
                          ? folder.path_
                          : folder.path_.substr(slash + 1);
  folder.partial_base_name_ = folder.base_name_ + ".partial";
  folder.parent_ =
      UniqueFd(open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.parent_.is_open()) {
    return ErrnoStatus(errno, parent, "open the folder");
  }
  QUIRE_RETURN_IF_ERROR(
      CheckPlace(folder.parent_.get(), folder.base_name_, folder.path_, replace)
          .status());
  for (int attempt = 0; attempt < kAcquireAttemptsMax; ++attempt) {
    const absl::Status status = folder.Acquire();
    if (!absl::IsAborted(status)) {
      QUIRE_RETURN_IF_ERROR(status);
      return folder;
    }
  }
  return absl::FailedPreconditionError(
      absl::StrCat(folder.name_, ": other writers keep coming and going here"));
}

// Aborted if someone removed the folder in between: try again.
absl::Status PartialFolder::Acquire() {
  if (mkdirat(parent_.get(), partial_base_name_.c_str(), 0755) != 0 &&
      errno != EEXIST) {
    return ErrnoStatus(errno, name_, "create");
  }
  UniqueFd folder(openat(parent_.get(), partial_base_name_.c_str(),
                         O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder.is_open()) {
    if (errno == ENOENT) {
      return absl::AbortedError("removed");
    }
    if (errno == ENOTDIR || errno == ELOOP) {
      return absl::AlreadyExistsError(
          absl::StrCat(name_, ": is there and is no folder; move it away"));
    }
    return ErrnoStatus(errno, name_, "open");
  }
  QUIRE_RETURN_IF_ERROR(CheckHoldsOnlyArchiveFiles(folder.get(), name_));
  UniqueFd manifest(openat(folder.get(), kManifestFileName,
                           O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!manifest.is_open()) {
    if (errno == ENOENT) {
      return absl::AbortedError("removed");
    }
    return ErrnoStatus(errno, name_, "create the manifest in");
  }
  QUIRE_RETURN_IF_ERROR(Lock(manifest.get(), name_));
  // The lock counts only if what was locked is still what the name means.
  struct stat locked;
  struct stat named;
  const std::string manifest_name =
      absl::StrCat(partial_base_name_, "/", kManifestFileName);
  if (fstat(manifest.get(), &locked) != 0) {
    return ErrnoStatus(errno, name_, "stat the manifest in");
  }
  if (fstatat(parent_.get(), manifest_name.c_str(), &named,
              AT_SYMLINK_NOFOLLOW) != 0 ||
      !SameFile(locked, named)) {
    return absl::AbortedError("removed");
  }
  QUIRE_RETURN_IF_ERROR(RemoveArchiveFiles(folder.get(), name_, false));
  if (ftruncate(manifest.get(), 0) != 0) {
    return ErrnoStatus(errno, name_, "empty the manifest in");
  }
  folder_ = std::move(folder);
  manifest_ = std::move(manifest);
  return absl::OkStatus();
}

PartialFolder::~PartialFolder() {
  if (!manifest_.is_open() || published_) {
    return;
  }
  // What cannot be removed is a leftover for the next writer.
  if (RemoveArchiveFiles(folder_.get(), name_, true).ok()) {
    unlinkat(parent_.get(), partial_base_name_.c_str(), AT_REMOVEDIR);
  }
}

absl::Status PartialFolder::Publish(ByteView manifest) {
  // A second descriptor of the same open file, which shares the lock.
  UniqueFd fd(fcntl(manifest_.get(), F_DUPFD_CLOEXEC, 0));
  const std::string file = absl::StrCat(name_, "/", kManifestFileName);
  if (!fd.is_open()) {
    return ErrnoStatus(errno, file, "write");
  }
  FileWriter writer(std::move(fd), file);
  QUIRE_RETURN_IF_ERROR(writer.Append(manifest));
  QUIRE_RETURN_IF_ERROR(writer.Finish());
  QUIRE_RETURN_IF_ERROR(SyncFolder(folder_.get(), name_));
  QUIRE_ASSIGN_OR_RETURN(
      const bool is_replacement,
      CheckPlace(parent_.get(), base_name_, path_, replace_));
  return is_replacement ? SwapWithOld() : MoveIntoPlace();
}

absl::Status PartialFolder::MoveIntoPlace() {
  int result = renameat2(parent_.get(), partial_base_name_.c_str(),
                         parent_.get(), base_name_.c_str(), RENAME_NOREPLACE);
  if (result != 0 && errno == EINVAL) {
    // The file system lacks that call. A plain rename replaces nothing but an
    // empty folder.
    result = renameat(parent_.get(), partial_base_name_.c_str(), parent_.get(),
                      base_name_.c_str());
  }
  if (result != 0) {
    return ErrnoStatus(errno, path_, "put the archive in place");
  }
  published_ = true;
  return SyncFolder(parent_.get(), path_);
}

absl::Status PartialFolder::SwapWithOld() {
  // After the swap the old archive is called PATH.partial: with its lock taken
  // beforehand, no other writer thinks it a leftover while it is removed here.
  const UniqueFd old_folder(openat(parent_.get(), base_name_.c_str(),
                                   O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!old_folder.is_open()) {
    return ErrnoStatus(errno, path_, "open");
  }
  const UniqueFd old_manifest(
      openat(old_folder.get(), kManifestFileName, O_RDWR | O_CLOEXEC));
  if (!old_manifest.is_open()) {
    return ErrnoStatus(errno, path_, "open the manifest in");
  }
  QUIRE_RETURN_IF_ERROR(Lock(old_manifest.get(), path_));
  if (renameat2(parent_.get(), partial_base_name_.c_str(), parent_.get(),
                base_name_.c_str(), RENAME_EXCHANGE) != 0) {
    if (errno == EINVAL) {
      return absl::UnavailableError(absl::StrCat(
          path_, ": this file system cannot swap two folders; remove the old ",
          "archive first"));
    }
    return ErrnoStatus(errno, path_, "replace");
  }
  published_ = true;
  QUIRE_RETURN_IF_ERROR(SyncFolder(parent_.get(), path_));
  // The new archive is in place: what is left of the old one is a leftover.
  if (RemoveArchiveFiles(old_folder.get(), name_, true).ok()) {
    unlinkat(parent_.get(), partial_base_name_.c_str(), AT_REMOVEDIR);
  }
  return absl::OkStatus();
}

}  // namespace quire
