// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/files/partial_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "server/archive/format/archive_format.h"

namespace quire {
namespace {

// Attempts, each ended by another writer that removed the directory, before
// giving up.
constexpr int kAcquireAttemptsMax = 100;

constexpr char kMarkFileName[] = "PARTIAL";

struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};

// Including the mark.
absl::Status CheckHoldsOnlyArchiveFiles(int directory_fd,
                                        absl::string_view name) {
  QUIRE_ASSIGN_OR_RETURN(const std::vector<std::string> entries,
                         ListDirectory(directory_fd, name));
  for (const std::string& entry : entries) {
    if (!IsArchiveFileName(entry) && entry != kMarkFileName &&
        entry != kJournalFileName && entry != kSalvagedName) {
      return absl::AlreadyExistsError(
          absl::StrCat(name, ": holds \"", entry,
                       "\", which is no file of an archive; move it away"));
    }
  }
  return absl::OkStatus();
}

absl::Status RemoveFile(int directory_fd, const std::string& entry,
                        absl::string_view name) {
  return unlinkat(directory_fd, entry.c_str(), 0) == 0 || errno == ENOENT
             ? absl::OkStatus()
             : ErrnoStatus(errno, absl::StrCat(name, "/", entry), "remove");
}

// False only if there is surely none: without it, the work of its writer is
// removed.
bool MayHaveJournal(int directory_fd) {
  return faccessat(directory_fd, kJournalFileName, F_OK, 0) == 0 ||
         errno != ENOENT;
}

// Removes a tar, or a directory of any depth.
absl::Status RemoveSalvaged(absl::string_view name) {
  std::error_code error;
  const std::string path = absl::StrCat(name, "/", kSalvagedName);
  std::filesystem::remove_all(path, error);
  return error ? ErrnoStatus(error.value(), path, "remove") : absl::OkStatus();
}

// Removes all except the mark.
absl::Status RemoveArchiveFiles(int directory_fd, absl::string_view name) {
  QUIRE_ASSIGN_OR_RETURN(const std::vector<std::string> entries,
                         ListDirectory(directory_fd, name));
  // First, so that no writer resumes from the rest.
  QUIRE_RETURN_IF_ERROR(RemoveFile(directory_fd, kJournalFileName, name));
  for (const std::string& entry : entries) {
    if (IsArchiveFileName(entry)) {
      QUIRE_RETURN_IF_ERROR(RemoveFile(directory_fd, entry, name));
    } else if (entry == kSalvagedName) {
      QUIRE_RETURN_IF_ERROR(RemoveSalvaged(name));
    }
  }
  return absl::OkStatus();
}

// Removes the directory with its contents. If that fails it stays marked, as a
// leftover for the next writer.
void RemoveLeftover(int parent_fd, const std::string& base_name,
                    int directory_fd, absl::string_view name) {
  if (RemoveArchiveFiles(directory_fd, name).ok()) {
    // The mark goes last: it carries the lock.
    unlinkat(directory_fd, kMarkFileName, 0);
    unlinkat(parent_fd, base_name.c_str(), AT_REMOVEDIR);
  }
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

// True if a directory in `parent_fd` has the owner that new ones get there. On
// some file systems, such as NFS for root, it is not the user of this process.
bool IsOwn(const struct stat& status, int parent_fd) {
  if (status.st_uid == geteuid()) {
    return true;
  }
  const std::string probe = absl::StrCat(".quire-owner-", getpid());
  struct stat created;
  const bool is_known =
      mkdirat(parent_fd, probe.c_str(), 0700) == 0 &&
      fstatat(parent_fd, probe.c_str(), &created, AT_SYMLINK_NOFOLLOW) == 0;
  unlinkat(parent_fd, probe.c_str(), AT_REMOVEDIR);
  return is_known && status.st_uid == created.st_uid;
}

bool SameFile(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// Returns PATH in a form that ends with a name.
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

// Checks whether `base_name` may be written: true if it is an archive to be
// replaced, false if nothing exists.
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
        absl::StrCat(path, ": is there and is no directory; move it away"));
  }
  const UniqueFd directory(
      openat(parent_fd, base_name.c_str(),
             O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory.is_open()) {
    return ErrnoStatus(errno, path, "open");
  }
  if (fstatat(directory.get(), kManifestFileName, &status, 0) != 0) {
    return absl::AlreadyExistsError(absl::StrCat(
        path, ": is a directory, but not an archive; move it away"));
  }
  if (!replace) {
    return absl::AlreadyExistsError(
        absl::StrCat(path, ": an archive is there already"));
  }
  QUIRE_RETURN_IF_ERROR(CheckHoldsOnlyArchiveFiles(directory.get(), path));
  return true;
}

// Moves `from` to a directory that has no `to`, whose path is `path`.
absl::Status RenameNew(int from_fd, const std::string& from, int to_fd,
                       const std::string& to, const std::string& path) {
  int result =
      renameat2(from_fd, from.c_str(), to_fd, to.c_str(), RENAME_NOREPLACE);
  if (result != 0 && errno == EINVAL) {
    // The file system lacks that call.
    if (faccessat(to_fd, to.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
      errno = EEXIST;
    } else {
      result = renameat(from_fd, from.c_str(), to_fd, to.c_str());
    }
  }
  return result == 0 ? absl::OkStatus()
                     : ErrnoStatus(errno, path, "put in place");
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ListDirectory(int directory_fd,
                                                       absl::string_view name) {
  // A separate descriptor: fdopendir() takes ownership of it and its position.
  const int fd = openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) {
    return ErrnoStatus(errno, name, "open");
  }
  const std::unique_ptr<DIR, CloseDirectory> directory(fdopendir(fd));
  if (directory == nullptr) {
    close(fd);
    return ErrnoStatus(errno, name, "list");
  }
  std::vector<std::string> names;
  while (true) {
    errno = 0;
    // The stream is this function's own, so readdir() is thread-safe.
    const dirent* entry =
        readdir(directory.get());  // NOLINT(concurrency-mt-unsafe)
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

absl::StatusOr<PartialDirectory> PartialDirectory::Locate(
    const std::string& path) {
  PartialDirectory directory;
  QUIRE_ASSIGN_OR_RETURN(directory.path_, Trim(path));
  directory.name_ = directory.path_ + ".partial";
  const size_t slash = directory.path_.rfind('/');
  const std::string parent =
      slash == std::string::npos ? "." : directory.path_.substr(0, slash + 1);
  directory.base_name_ = slash == std::string::npos
                             ? directory.path_
                             : directory.path_.substr(slash + 1);
  directory.partial_base_name_ = directory.base_name_ + ".partial";
  directory.parent_ =
      UniqueFd(open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.parent_.is_open()) {
    return ErrnoStatus(errno, parent, "open the directory");
  }
  return directory;
}

absl::StatusOr<PartialDirectory> PartialDirectory::Create(
    const std::string& path, bool replace, Leftovers leftovers) {
  QUIRE_ASSIGN_OR_RETURN(PartialDirectory directory, Locate(path));
  directory.replace_ = replace;
  QUIRE_RETURN_IF_ERROR(CheckPlace(directory.parent_.get(),
                                   directory.base_name_, directory.path_,
                                   replace)
                            .status());
  QUIRE_RETURN_IF_ERROR(directory.AcquirePatiently(leftovers));
  return directory;
}

absl::StatusOr<PartialDirectory> PartialDirectory::CreateForFiles(
    const std::string& path) {
  QUIRE_ASSIGN_OR_RETURN(PartialDirectory directory, Locate(path));
  QUIRE_RETURN_IF_ERROR(directory.AcquireUnlessResumable());
  return directory;
}

absl::StatusOr<PartialDirectory> PartialDirectory::CreateForSalvage(
    const std::string& path) {
  QUIRE_ASSIGN_OR_RETURN(PartialDirectory directory, Locate(path));
  if (faccessat(directory.parent_.get(), directory.base_name_.c_str(), F_OK,
                AT_SYMLINK_NOFOLLOW) == 0) {
    return absl::AlreadyExistsError(absl::StrCat(
        directory.path_,
        ": is there already; move it away or choose another output"));
  }
  QUIRE_RETURN_IF_ERROR(directory.AcquireUnlessResumable());
  return directory;
}

absl::Status PartialDirectory::AcquireUnlessResumable() {
  QUIRE_RETURN_IF_ERROR(AcquirePatiently(Leftovers::kKeep));
  if (MayHaveJournal(fd())) {
    KeepUnpublished();
    return absl::FailedPreconditionError(absl::StrCat(
        name_,
        ": holds an unfinished archive; resume its writer, or remove it"));
  }
  return absl::OkStatus();
}

absl::Status PartialDirectory::AcquirePatiently(Leftovers leftovers) {
  for (int attempt = 0; attempt < kAcquireAttemptsMax; ++attempt) {
    const absl::Status status = Acquire(leftovers);
    if (!absl::IsAborted(status)) {
      return status;
    }
  }
  return absl::FailedPreconditionError(
      absl::StrCat(name_, ": other writers keep coming and going here"));
}

// Aborted if another process removed the directory meanwhile: try again.
absl::Status PartialDirectory::Acquire(Leftovers leftovers) {
  if (mkdirat(parent_.get(), partial_base_name_.c_str(), 0755) != 0 &&
      errno != EEXIST) {
    return ErrnoStatus(errno, name_, "create");
  }
  UniqueFd directory(openat(parent_.get(), partial_base_name_.c_str(),
                            O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory.is_open()) {
    if (errno == ENOENT) {
      return absl::AbortedError("removed");
    }
    if (errno == ENOTDIR || errno == ELOOP) {
      return absl::AlreadyExistsError(
          absl::StrCat(name_, ": is there and is no directory; move it away"));
    }
    return ErrnoStatus(errno, name_, "open");
  }
  // Its owner could change it later: an archive would become theirs.
  struct stat status;
  if (fstat(directory.get(), &status) != 0) {
    return ErrnoStatus(errno, name_, "stat");
  }
  if (!IsOwn(status, parent_.get())) {
    return absl::AlreadyExistsError(
        absl::StrCat(name_, ": belongs to user ", status.st_uid,
                     ", and this process is of user ", geteuid(),
                     "; remove it or choose another output"));
  }
  bool is_new_mark = false;
  QUIRE_ASSIGN_OR_RETURN(UniqueFd mark, OpenMark(directory.get(), is_new_mark));
  QUIRE_RETURN_IF_ERROR(Lock(mark.get(), name_));
  // The lock counts only if the name still means what was locked: the previous
  // writer may have published the directory.
  struct stat locked;
  struct stat named;
  const std::string mark_name =
      absl::StrCat(partial_base_name_, "/", kMarkFileName);
  if (fstat(mark.get(), &locked) != 0) {
    return ErrnoStatus(errno, name_, "stat the mark in");
  }
  if (fstatat(parent_.get(), mark_name.c_str(), &named, AT_SYMLINK_NOFOLLOW) !=
          0 ||
      !SameFile(locked, named)) {
    if (is_new_mark) {
      unlinkat(directory.get(), kMarkFileName, 0);
    }
    return absl::AbortedError("removed");
  }
  if (!S_ISREG(locked.st_mode)) {
    return absl::AlreadyExistsError(
        absl::StrCat(name_, "/", kMarkFileName,
                     ": is not a file; remove it or choose another output"));
  }
  QUIRE_RETURN_IF_ERROR(CheckHoldsOnlyArchiveFiles(directory.get(), name_));
  if (leftovers == Leftovers::kRemove || !MayHaveJournal(directory.get())) {
    QUIRE_RETURN_IF_ERROR(RemoveArchiveFiles(directory.get(), name_));
  }
  directory_ = std::move(directory);
  mark_ = std::move(mark);
  return absl::OkStatus();
}

bool PartialDirectory::IsNamed(int directory_fd) const {
  struct stat opened;
  struct stat named;
  return fstat(directory_fd, &opened) == 0 &&
         fstatat(parent_.get(), partial_base_name_.c_str(), &named,
                 AT_SYMLINK_NOFOLLOW) == 0 &&
         SameFile(opened, named);
}

absl::StatusOr<UniqueFd> PartialDirectory::OpenMark(int directory_fd,
                                                    bool& is_new) const {
  UniqueFd mark(
      openat(directory_fd, kMarkFileName, O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  if (mark.is_open()) {
    return mark;
  }
  if (errno != ENOENT) {
    return ErrnoStatus(errno, name_, "open the mark in");
  }
  QUIRE_ASSIGN_OR_RETURN(const std::vector<std::string> entries,
                         ListDirectory(directory_fd, name_));
  struct stat status;
  if (entries.empty()) {
    mark = UniqueFd(openat(directory_fd, kMarkFileName,
                           O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                           0644));
    is_new = mark.is_open();
    if (!mark.is_open() && errno != EEXIST && errno != ENOENT) {
      return ErrnoStatus(errno, name_, "create the mark in");
    }
  } else if (IsNamed(directory_fd) &&
             fstatat(directory_fd, kMarkFileName, &status,
                     AT_SYMLINK_NOFOLLOW) != 0) {
    return absl::AlreadyExistsError(absl::StrCat(
        name_, ": holds \"", *std::ranges::min_element(entries),
        "\" but no file ", kMarkFileName,
        ", so no build left it; move it away or choose another output"));
  }
  if (!mark.is_open()) {
    return absl::AbortedError("another writer came or went");
  }
  return mark;
}

PartialDirectory::~PartialDirectory() {
  if (mark_.is_open() && !published_ && !stays_) {
    RemoveLeftover(parent_.get(), partial_base_name_, directory_.get(), name_);
  }
}

absl::Status PartialDirectory::RemoveFiles(
    const std::function<bool(absl::string_view name)>& is_removed) {
  QUIRE_ASSIGN_OR_RETURN(const std::vector<std::string> entries,
                         ListDirectory(directory_.get(), name_));
  for (const std::string& entry : entries) {
    if (IsArchiveFileName(entry) && is_removed(entry)) {
      QUIRE_RETURN_IF_ERROR(RemoveFile(directory_.get(), entry, name_));
    }
  }
  return SyncDirectory(directory_.get(), name_);
}

absl::Status PartialDirectory::WriteManifest(ByteView manifest) {
  QUIRE_ASSIGN_OR_RETURN(
      FileWriter writer,
      FileWriter::Create(directory_.get(), kManifestFileName,
                         absl::StrCat(name_, "/", kManifestFileName)));
  QUIRE_RETURN_IF_ERROR(writer.Append(manifest));
  QUIRE_RETURN_IF_ERROR(writer.Finish());
  return SyncDirectory(directory_.get(), name_);
}

absl::Status PartialDirectory::MoveFilesInto(int archive_fd,
                                             const std::string& path) {
  QUIRE_ASSIGN_OR_RETURN(const std::vector<std::string> entries,
                         ListDirectory(directory_.get(), name_));
  std::vector<std::string> moved;
  absl::Status status;
  for (const std::string& entry : entries) {
    if (!IsArchiveFileName(entry) || entry == kManifestFileName) {
      continue;
    }
    status = RenameNew(directory_.get(), entry, archive_fd, entry,
                       absl::StrCat(path, "/", entry));
    if (!status.ok()) {
      break;
    }
    moved.push_back(entry);
  }
  if (status.ok()) {
    status = SyncDirectory(archive_fd, path);
  }
  if (status.ok() && renameat(directory_.get(), kManifestFileName, archive_fd,
                              kManifestFileName) != 0) {
    status = ErrnoStatus(errno, absl::StrCat(path, "/", kManifestFileName),
                         "replace");
  }
  if (!status.ok()) {
    for (const std::string& entry : moved) {
      unlinkat(archive_fd, entry.c_str(), 0);
    }
  }
  return status;
}

absl::Status PartialDirectory::Publish() {
  QUIRE_ASSIGN_OR_RETURN(
      const bool is_replacement,
      CheckPlace(parent_.get(), base_name_, path_, replace_));
  return is_replacement ? SwapWithOld() : MoveIntoPlace();
}

absl::Status PartialDirectory::PublishSalvaged() {
  QUIRE_RETURN_IF_ERROR(RenameNew(directory_.get(), kSalvagedName,
                                  parent_.get(), base_name_, path_));
  published_ = true;
  RemoveLeftover(parent_.get(), partial_base_name_, directory_.get(), name_);
  return SyncDirectory(parent_.get(), path_);
}

absl::Status PartialDirectory::MoveFile(const std::string& file_name) {
  const UniqueFd archive(openat(parent_.get(), base_name_.c_str(),
                                O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!archive.is_open()) {
    return ErrnoStatus(errno, path_, "open");
  }
  if (renameat(directory_.get(), file_name.c_str(), archive.get(),
               file_name.c_str()) != 0) {
    return ErrnoStatus(errno, absl::StrCat(path_, "/", file_name), "replace");
  }
  return SyncDirectory(archive.get(), path_);
}

void PartialDirectory::RemoveMark() {
  unlinkat(directory_.get(), kJournalFileName, 0);
  unlinkat(directory_.get(), kMarkFileName, 0);
  // Releases a writer that waits for this lock.
  mark_ = UniqueFd();
}

absl::Status PartialDirectory::MoveIntoPlace() {
  int result = renameat2(parent_.get(), partial_base_name_.c_str(),
                         parent_.get(), base_name_.c_str(), RENAME_NOREPLACE);
  if (result != 0 && errno == EINVAL) {
    // The file system lacks that call. A plain rename replaces only an empty
    // directory.
    result = renameat(parent_.get(), partial_base_name_.c_str(), parent_.get(),
                      base_name_.c_str());
  }
  if (result != 0) {
    return ErrnoStatus(errno, path_, "put the archive in place");
  }
  published_ = true;
  RemoveMark();
  return SyncDirectory(parent_.get(), path_);
}

absl::Status PartialDirectory::SwapWithOld() {
  // After the swap the old archive is called PATH.partial. The mark makes it a
  // leftover if this process is killed; the lock prevents that before.
  const UniqueFd old_directory(
      openat(parent_.get(), base_name_.c_str(),
             O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!old_directory.is_open()) {
    return ErrnoStatus(errno, path_, "open");
  }
  const UniqueFd old_mark(openat(old_directory.get(), kMarkFileName,
                                 O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
                                 0644));
  if (!old_mark.is_open()) {
    return ErrnoStatus(errno, path_, "create a file in");
  }
  QUIRE_RETURN_IF_ERROR(Lock(old_mark.get(), path_));
  // If its writer was killed after publication, the old archive has a journal:
  // as PATH.partial it would be an archive to resume, and stay. Both changes
  // must be durable before the swap.
  QUIRE_RETURN_IF_ERROR(
      RemoveFile(old_directory.get(), kJournalFileName, path_));
  QUIRE_RETURN_IF_ERROR(SyncDirectory(old_directory.get(), path_));
  if (renameat2(parent_.get(), partial_base_name_.c_str(), parent_.get(),
                base_name_.c_str(), RENAME_EXCHANGE) != 0) {
    const int error = errno;
    unlinkat(old_directory.get(), kMarkFileName, 0);
    if (error == EINVAL) {
      return absl::UnavailableError(absl::StrCat(
          path_,
          ": this file system cannot swap two directories; remove the old ",
          "archive first"));
    }
    return ErrnoStatus(error, path_, "replace");
  }
  published_ = true;
  RemoveMark();
  QUIRE_RETURN_IF_ERROR(SyncDirectory(parent_.get(), path_));
  RemoveLeftover(parent_.get(), partial_base_name_, old_directory.get(), name_);
  return absl::OkStatus();
}

}  // namespace quire
