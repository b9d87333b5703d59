// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/files/archive_change.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <set>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "codecs/base/status_macros.h"
#include "server/archive/files/archive_directory.h"
#include "server/archive/format/archive_format.h"

namespace quire {
namespace {

// Names of the files of an archive, with its manifest.
std::set<std::string, std::less<>> FileNames(const Manifest& manifest) {
  std::set<std::string, std::less<>> names = {kManifestFileName};
  if (manifest.dictionary.has_value()) {
    names.insert(DictionaryFileName(manifest.dictionary->hash));
  }
  if (manifest.symbol_table.has_value()) {
    names.insert(SymbolTableFileName(manifest.symbol_table->hash));
  }
  for (const ManifestSegment& segment : manifest.segments) {
    names.insert(SegmentFileName(segment.number));
  }
  return names;
}

// Returns `path` without symbolic links and a slash at its end.
absl::StatusOr<std::string> ResolvePath(const std::string& path) {
  std::error_code error;
  std::string resolved = std::filesystem::canonical(path, error);
  if (error) {
    return ErrnoStatus(error.value(), path, "open");
  }
  return resolved;
}

absl::StatusOr<dev_t> DeviceOf(int fd, absl::string_view path) {
  struct stat status;
  if (fstat(fd, &status) != 0) {
    return ErrnoStatus(errno, path, "stat");
  }
  return status.st_dev;
}

ManifestState StateOf(const Manifest& manifest) {
  ManifestState state = {.uuid = manifest.uuid};
  for (const ManifestSegment& segment : manifest.segments) {
    state.size_bytes += segment.size_bytes;
    state.document_count += segment.document_count;
  }
  return state;
}

// Sets the earlier states of `after`, the archive of `before` once it is
// changed. REQUIRES: after.uuid is set.
void SetEarlierStates(const Manifest& before, EarlierStates earlier,
                      Manifest& after) {
  after.history.clear();
  after.redacted_states.clear();
  if (earlier == EarlierStates::kDrop) {
    return;
  }
  after.redacted_states = before.redacted_states;
  std::vector<ManifestState>& states =
      earlier == EarlierStates::kKeep ? after.history : after.redacted_states;
  std::ranges::copy(before.history, std::back_inserter(states));
  // A copy may add nothing.
  if (after.uuid != before.uuid) {
    states.push_back(StateOf(before));
  }
  if (states.size() > kHistoryCountMax) {
    states.erase(states.begin(),
                 states.end() - static_cast<ptrdiff_t>(kHistoryCountMax));
  }
}

}  // namespace

absl::StatusOr<ArchiveChange> ArchiveChange::Begin(const std::string& path) {
  QUIRE_ASSIGN_OR_RETURN(std::string resolved, ResolvePath(path));
  QUIRE_ASSIGN_OR_RETURN(PartialDirectory partial,
                         PartialDirectory::CreateForFiles(resolved));
  ArchiveChange change(std::move(partial), std::move(resolved));
  QUIRE_RETURN_IF_ERROR(change.OpenArchive());
  QUIRE_RETURN_IF_ERROR(change.RemoveUnnamed(change.manifest_));
  return change;
}

absl::StatusOr<ArchiveChange> ArchiveChange::BeginCopy(
    const ArchiveDirectory& from, const std::string& path, bool replace,
    const std::atomic<bool>* cancel) {
  QUIRE_ASSIGN_OR_RETURN(PartialDirectory partial,
                         PartialDirectory::Create(path, replace));
  ArchiveChange change(std::move(partial), path);
  change.manifest_ = from.manifest;
  QUIRE_RETURN_IF_ERROR(change.AddFiles(from, cancel));
  return change;
}

absl::Status ArchiveChange::OpenArchive() {
  QUIRE_ASSIGN_OR_RETURN(ArchiveDirectory directory, OpenKnownArchive(path_));
  archive_ = std::move(directory.fd);
  manifest_ = std::move(directory.manifest);
  manifest_file_ = directory.manifest_file;
  QUIRE_ASSIGN_OR_RETURN(const dev_t device, DeviceOf(archive_.get(), path_));
  QUIRE_ASSIGN_OR_RETURN(const dev_t partial_device,
                         DeviceOf(partial_.fd(), partial_.name()));
  if (device != partial_device) {
    return absl::FailedPreconditionError(
        absl::StrCat(path_, ": is a mount point, and changes are written to ",
                     partial_.name(),
                     ", which must be on the same file system; move the "
                     "archive into a directory of the mounted file system"));
  }
  return absl::OkStatus();
}

absl::Status ArchiveChange::CheckUnchanged() const {
  const std::string file = absl::StrCat(path_, "/", kManifestFileName);
  const absl::StatusOr<ReadableFile> now =
      OpenReadableFile(AT_FDCWD, file, file);
  return now.ok() && now->identity == manifest_file_
             ? absl::OkStatus()
             : absl::FailedPreconditionError(absl::StrCat(
                   path_,
                   ": was replaced while it was being changed, and stays as it "
                   "is now; try again"));
}

absl::Status ArchiveChange::RemoveUnnamed(const Manifest& manifest) const {
  const auto named = FileNames(manifest);
  QUIRE_ASSIGN_OR_RETURN(std::vector<std::string> entries,
                         ListDirectory(archive_.get(), path_));
  std::erase_if(entries, [&named](const std::string& entry) {
    // A writer that was killed after publication left its journal.
    return entry != kJournalFileName &&
           (!IsArchiveFileName(entry) || named.contains(entry));
  });
  if (entries.empty()) {
    return absl::OkStatus();
  }
  // A writer that was killed after it renamed MANIFEST has not synced that: the
  // old one, which names these files, may come back in a crash.
  QUIRE_RETURN_IF_ERROR(SyncDirectory(archive_.get(), path_));
  for (const std::string& entry : entries) {
    if (unlinkat(archive_.get(), entry.c_str(), 0) != 0 && errno != ENOENT) {
      return ErrnoStatus(errno, absl::StrCat(path_, "/", entry), "remove");
    }
  }
  return SyncDirectory(archive_.get(), path_);
}

absl::Status ArchiveChange::AddFiles(const ArchiveDirectory& from,
                                     const std::atomic<bool>* cancel) {
  for (const std::string& name : FileNames(from.manifest)) {
    if (name == kManifestFileName ||
        faccessat(partial_.fd(), name.c_str(), F_OK, 0) == 0) {
      continue;
    }
    QUIRE_ASSIGN_OR_RETURN(
        const ReadableFile file,
        OpenReadableFile(from.fd.get(), name,
                         absl::StrCat(from.path, "/", name)));
    if (linkat(from.fd.get(), name.c_str(), partial_.fd(), name.c_str(),
               AT_SYMLINK_FOLLOW) == 0) {
      // A program that copied the archive may not have synced it.
      QUIRE_RETURN_IF_ERROR(SyncDirectory(file.fd.get(), file.path));
    } else {
      QUIRE_RETURN_IF_ERROR(CopyFile(file, partial_.fd(), name,
                                     absl::StrCat(partial_.name(), "/", name),
                                     cancel));
    }
  }
  return absl::OkStatus();
}

absl::Status ArchiveChange::RemoveNew(const std::string& name) {
  return unlinkat(partial_.fd(), name.c_str(), 0) == 0
             ? absl::OkStatus()
             : ErrnoStatus(errno, absl::StrCat(partial_.name(), "/", name),
                           "remove");
}

absl::StatusOr<ArchiveChange::Committed> ArchiveChange::Commit(
    Manifest manifest, EarlierStates earlier) {
  manifest.uuid = manifest.DeriveUuid();
  SetEarlierStates(manifest_, earlier, manifest);
  const std::string file = EncodeManifest(manifest);
  // Never publish a manifest that readers reject.
  QUIRE_RETURN_IF_ERROR(InFile(path_, ParseManifest(AsBytes(file)).status()));
  QUIRE_RETURN_IF_ERROR(partial_.WriteManifest(AsBytes(file)));
  if (is_copy()) {
    QUIRE_RETURN_IF_ERROR(partial_.Publish());
    return Committed{.manifest = std::move(manifest),
                     .file_size_bytes = file.size(),
                     .old_files = {}};
  }
  QUIRE_RETURN_IF_ERROR(CheckUnchanged());
  QUIRE_RETURN_IF_ERROR(partial_.MoveFilesInto(archive_.get(), path_));
  // Failures after this rename leave the new archive.
  const absl::Status synced = SyncDirectory(archive_.get(), path_);
  if (!synced.ok()) {
    return absl::Status(
        synced.code(),
        absl::StrCat(synced.message(),
                     "; the archive is changed, but may be the old one again "
                     "after a crash of the machine"));
  }
  absl::Status old_files = RemoveUnnamed(manifest);
  return Committed{.manifest = std::move(manifest),
                   .file_size_bytes = file.size(),
                   .old_files = std::move(old_files)};
}

}  // namespace quire
