// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/files/archive_directory.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/bytes.h"
#include "codecs/base/status_macros.h"
#include "server/archive/format/archive_format.h"

namespace quire {
namespace {

// Replacements during one opening before giving up. Each costs its writer
// several syncs, an opening much less.
constexpr int kOpenAttemptsMax = 100;

// Opens a file that the manifest names, which must exist.
absl::StatusOr<ReadableFile> OpenPart(const ArchiveDirectory& directory,
                                      const std::string& name) {
  std::string path = absl::StrCat(directory.path, "/", name);
  auto file = OpenReadableFile(directory.fd.get(), name, path);
  if (absl::IsNotFound(file.status())) {
    return absl::DataLossError(
        absl::StrCat(path, ": is missing; restore it from a copy"));
  }
  return file;
}

bool IsSameFile(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// True if MANIFEST is another file than the one read, or has changed: then
// files that it named may be missing rightly.
bool HasNewManifest(const std::string& path,
                    const std::optional<FileIdentity>& read) {
  if (!read.has_value()) {
    return false;
  }
  const std::string file = absl::StrCat(path, "/", kManifestFileName);
  const absl::StatusOr<ReadableFile> now =
      OpenReadableFile(AT_FDCWD, file, file);
  return now.ok() && now->identity != *read;
}

// Segments without a MANIFEST are a damaged archive, or an interrupted build.
bool HasSegments(const std::string& path) {
  std::error_code error;
  std::filesystem::directory_iterator file(path, error);
  for (; !error && file != std::filesystem::directory_iterator();
       file.increment(error)) {
    if (IsSegmentFileName(file->path().filename().string())) {
      return true;
    }
  }
  return false;
}

}  // namespace

absl::StatusOr<ArchiveDirectory> OpenKnownArchive(const std::string& path) {
  ArchiveDirectory known;
  QUIRE_RETURN_IF_ERROR(
      WithArchiveDirectory(path, [&known](ArchiveDirectory& directory) {
        known = std::move(directory);
        return absl::OkStatus();
      }));
  const std::string unknown = known.manifest.Describe(0).unknown_part;
  if (!unknown.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        path, ": ", unknown,
        " that this program does not know and would drop: use a newer one"));
  }
  return known;
}

absl::StatusOr<ArchiveDirectory> OpenDirectoryOnly(const std::string& path) {
  ArchiveDirectory directory;
  directory.path = path;
  directory.fd =
      UniqueFd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.fd.is_open()) {
    return directory;
  }
  if (errno == ENOTDIR) {
    return absl::NotFoundError(absl::StrCat(
        path, ": is a file; an archive is a directory with a MANIFEST"));
  }
  return ErrnoStatus(errno, path, "open");
}

absl::Status ReadManifest(ArchiveDirectory& directory, std::string* bytes) {
  const std::string path = absl::StrCat(directory.path, "/", kManifestFileName);
  absl::StatusOr<ReadableFile> opened =
      OpenReadableFile(directory.fd.get(), kManifestFileName, path);
  if (absl::IsNotFound(opened.status())) {
    if (HasSegments(directory.path)) {
      return absl::DataLossError(absl::StrCat(
          path,
          ": the file is missing, but segments are there; quired repair takes "
          "it from a copy, quired salvage saves documents without it"));
    }
    return absl::NotFoundError(
        absl::StrCat(directory.path, ": is no archive: this directory has no ",
                     kManifestFileName));
  }
  QUIRE_ASSIGN_OR_RETURN(const ReadableFile file, std::move(opened));
  if (file.size_bytes() > kManifestFileSizeBytesMax) {
    return InFile(path, Damaged(absl::StrCat(file.size_bytes(),
                                             " bytes long, expected at most ",
                                             kManifestFileSizeBytesMax)));
  }
  std::string read(file.size_bytes(), '\0');
  QUIRE_RETURN_IF_ERROR(
      ReadExactly(file.fd.get(), 0, AsMutableBytes(read), path));
  auto manifest = ParseManifest(AsBytes(read));
  QUIRE_RETURN_IF_ERROR(InFile(path, manifest.status()));
  directory.manifest = *std::move(manifest);
  directory.manifest_file = file.identity;
  if (bytes != nullptr) {
    *bytes = std::move(read);
  }
  return absl::OkStatus();
}

absl::Status WithArchiveDirectory(
    const std::string& path,
    const std::function<absl::Status(ArchiveDirectory&)>& open) {
  for (int attempt = 0; attempt < kOpenAttemptsMax; ++attempt) {
    QUIRE_ASSIGN_OR_RETURN(ArchiveDirectory directory, OpenDirectoryOnly(path));
    struct stat opened;
    if (fstat(directory.fd.get(), &opened) != 0) {
      return ErrnoStatus(errno, path, "stat");
    }
    absl::Status status = ReadManifest(directory);
    std::optional<FileIdentity> read;
    if (status.ok()) {
      read = directory.manifest_file;
      status = open(directory);
    }
    // The descriptor is open, so no new directory has its inode.
    struct stat named;
    if (status.ok() ||
        (stat(path.c_str(), &named) == 0 && IsSameFile(opened, named) &&
         !HasNewManifest(path, read))) {
      return status;
    }
  }
  return absl::AbortedError(absl::StrCat(
      path, ": was replaced ", kOpenAttemptsMax,
      " times while it was opened; try again when its writers have ended"));
}

absl::StatusOr<SegmentFile> OpenSegmentFile(const ArchiveDirectory& directory,
                                            uint32_t segment_number,
                                            DirectIo direct_io,
                                            std::string& note) {
  SegmentFile segment;
  const std::string name = SegmentFileName(segment_number);
  QUIRE_ASSIGN_OR_RETURN(segment.file, OpenPart(directory, name));
  if (direct_io == DirectIo::kOff) {
    return segment;
  }
  auto direct = OpenDirect(directory.fd.get(), name, segment.file.path);
  if (direct.ok()) {
    struct stat plain_status;
    struct stat direct_status;
    if (fstat(segment.file.fd.get(), &plain_status) != 0 ||
        fstat(direct->fd.get(), &direct_status) != 0 ||
        !IsSameFile(plain_status, direct_status)) {
      return absl::DataLossError(absl::StrCat(
          segment.file.path, ": was replaced while it was opened"));
    }
    segment.direct = *std::move(direct);
    return segment;
  }
  if (direct_io == DirectIo::kOn || absl::IsNotFound(direct.status())) {
    return direct.status();
  }
  note = std::string(direct.status().message());
  return segment;
}

ArchiveFiles OpenArchiveFiles(const ArchiveDirectory& directory,
                              DirectIo direct_io) {
  ArchiveFiles files;
  const Manifest& manifest = directory.manifest;
  if (manifest.dictionary.has_value()) {
    files.dictionary =
        OpenPart(directory, DictionaryFileName(manifest.dictionary->hash));
  }
  if (manifest.symbol_table.has_value()) {
    files.symbol_table =
        OpenPart(directory, SymbolTableFileName(manifest.symbol_table->hash));
  }
  files.segments.reserve(manifest.segments.size());
  for (const ManifestSegment& segment : manifest.segments) {
    files.segments.push_back(OpenSegmentFile(directory, segment.number,
                                             direct_io, files.direct_io_note));
  }
  return files;
}

absl::Status ArchiveFiles::FirstFault(const Manifest& manifest) const {
  if (dictionary.has_value()) {
    QUIRE_RETURN_IF_ERROR(dictionary->status());
    QUIRE_RETURN_IF_ERROR(
        CheckFileSize(**dictionary, manifest.dictionary->file_size_bytes));
  }
  if (symbol_table.has_value()) {
    QUIRE_RETURN_IF_ERROR(symbol_table->status());
  }
  for (size_t i = 0; i < segments.size(); ++i) {
    QUIRE_RETURN_IF_ERROR(segments[i].status());
    QUIRE_RETURN_IF_ERROR(
        CheckFileSize(segments[i]->file, manifest.segments[i].file_size_bytes));
  }
  return absl::OkStatus();
}

void ArchiveFiles::IgnoreTimes() {
  const auto ignore = [](FileIdentity& identity) {
    identity.seconds = 0;
    identity.nanoseconds = 0;
  };
  if (dictionary.has_value()) {
    ignore((*dictionary)->identity);
  }
  for (absl::StatusOr<SegmentFile>& segment : segments) {
    ignore(segment->file.identity);
  }
}

std::vector<FileIdentity> ArchiveFiles::Identify(
    const ArchiveDirectory& directory) const {
  std::vector<FileIdentity> identities = {directory.manifest_file};
  if (dictionary.has_value()) {
    identities.push_back((*dictionary)->identity);
  }
  if (symbol_table.has_value()) {
    identities.push_back((*symbol_table)->identity);
  }
  for (const auto& segment : segments) {
    identities.push_back(segment->file.identity);
  }
  return identities;
}

}  // namespace quire
