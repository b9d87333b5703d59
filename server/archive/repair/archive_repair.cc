// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/repair/archive_repair.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "server/archive/files/archive_directory.h"
#include "server/archive/files/file_io.h"
#include "server/archive/files/partial_directory.h"
#include "server/archive/format/manifest.h"
#include "server/archive/repair/repair_plan.h"

namespace quire {
namespace {

// The archive to repair, or a copy of it.
struct Place {
  ArchiveDirectory directory;
  // OK if MANIFEST is undamaged.
  absl::Status manifest_status;
  // MANIFEST.
  std::string manifest_bytes;
};

absl::StatusOr<Place> OpenPlace(const std::string& path) {
  Place place;
  QUIRE_ASSIGN_OR_RETURN(place.directory, OpenDirectoryOnly(path));
  place.manifest_status = ReadManifest(place.directory, &place.manifest_bytes);
  const Manifest& manifest = place.directory.manifest;
  if (place.manifest_status.ok() && manifest.DeriveUuid() != manifest.uuid) {
    place.manifest_status =
        InFile(absl::StrCat(path, "/", kManifestFileName),
               Damaged("the uuid is not the one that the contents have"));
  }
  return place;
}

absl::Status WriteAt(int fd, uint64_t offset, ByteView bytes,
                     const std::string& file) {
  while (!bytes.empty()) {
    const ssize_t size =
        pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (size < 0 && errno == EINTR) {
      continue;
    }
    if (size <= 0) {
      return ErrnoStatus(size < 0 ? errno : EIO, file, "write");
    }
    offset += static_cast<uint64_t>(size);
    bytes = bytes.subspan(static_cast<size_t>(size));
  }
  return absl::OkStatus();
}

// The repair of one archive.
class Repair {
 public:
  // `partial` is that of the archive, acquired before `places` were opened;
  // unset for a dry run.
  Repair(std::vector<Place> places, const Manifest& manifest,
         std::string manifest_bytes, const RepairOptions& options,
         std::optional<PartialDirectory> partial)
      : places_(std::move(places)),
        manifest_(manifest),
        manifest_bytes_(std::move(manifest_bytes)),
        options_(options),
        partial_(std::move(partial)),
        planner_(manifest_,
                 [this](uint64_t size_bytes) { AddProgress(size_bytes); }) {}

  absl::StatusOr<RepairReport> Run();

 private:
  enum class Kind { kManifest, kDictionary, kSymbolTable, kSegment };

  struct File {
    Kind kind = Kind::kSegment;
    std::string name = {};
    // For segments.
    const ManifestSegment* segment = nullptr;
  };

  void AddProgress(uint64_t size_bytes) {
    progress_.bytes_done += size_bytes;
    if (options_.on_progress) {
      options_.on_progress(progress_);
    }
  }

  // All files in the order of their repair.
  std::vector<File> Files() const;
  FilePlan Plan(const File& file, const FileCopies& copies,
                RepairPlanner& planner) const;
  FileCopies OpenCopies(const std::string& name) const;
  // Checks that a directory without MANIFEST is a copy of the archive, once all
  // files were planned. Errors: FailedPrecondition.
  absl::Status CheckIsSameArchive() const;
  // Makes the new file, checks it and puts it in place.
  absl::Status Replace(const File& file, const FilePlan& plan);
  // Writes and syncs the new file: the parts of the old one, and the patches.
  // `share` takes them by sharing their storage.
  absl::Status Write(const FilePlan& plan, const FileCopies& copies, bool share,
                     int directory_fd, const std::string& path) const;

  const std::vector<Place> places_;
  const Manifest& manifest_;
  const std::string manifest_bytes_;
  const RepairOptions& options_;
  std::optional<PartialDirectory> partial_;
  RepairProgress progress_;
  RepairPlanner planner_;
};

std::vector<Repair::File> Repair::Files() const {
  std::vector<File> files;
  if (manifest_.dictionary.has_value()) {
    files.push_back({.kind = Kind::kDictionary,
                     .name = DictionaryFileName(manifest_.dictionary->hash)});
  }
  if (manifest_.symbol_table.has_value()) {
    files.push_back(
        {.kind = Kind::kSymbolTable,
         .name = SymbolTableFileName(manifest_.symbol_table->hash)});
  }
  for (const ManifestSegment& segment : manifest_.segments) {
    files.push_back({.kind = Kind::kSegment,
                     .name = SegmentFileName(segment.number),
                     .segment = &segment});
  }
  files.push_back({.kind = Kind::kManifest, .name = kManifestFileName});
  return files;
}

FilePlan Repair::Plan(const File& file, const FileCopies& copies,
                      RepairPlanner& planner) const {
  switch (file.kind) {
    case Kind::kDictionary:
      return planner.PlanDictionary(copies);
    case Kind::kSymbolTable:
      return planner.PlanSymbolTable(copies);
    case Kind::kSegment:
      return planner.PlanSegment(*file.segment, copies);
    case Kind::kManifest:
      break;
  }
  FilePlan plan(file.name, manifest_bytes_.size());
  plan.Require(0, manifest_bytes_, copies);
  return plan;
}

FileCopies Repair::OpenCopies(const std::string& name) const {
  FileCopies copies;
  for (const Place& place : places_) {
    auto file = OpenReadableFile(place.directory.fd.get(), name,
                                 absl::StrCat(place.directory.path, "/", name));
    copies.Add(file.ok() ? std::optional(*std::move(file)) : std::nullopt);
  }
  return copies;
}

absl::StatusOr<RepairReport> Repair::Run() {
  RepairReport report;
  const ArchiveInfo info = manifest_.Describe(manifest_bytes_.size());
  report.uuid = info.uuid;
  progress_.bytes_total = info.stored_size_bytes;
  const std::vector<File> files = Files();
  report.file_count = files.size();
  std::vector<std::pair<const File*, FilePlan>> plans;
  for (const File& file : files) {
    const FileCopies copies = OpenCopies(file.name);
    FilePlan plan = Plan(file, copies, planner_);
    if (!plan.IsWhole(copies)) {
      plans.emplace_back(&file, std::move(plan));
    }
  }
  if (!places_[0].manifest_status.ok()) {
    QUIRE_RETURN_IF_ERROR(CheckIsSameArchive());
  }
  for (const auto& [file, plan] : plans) {
    if (plan.file().missing.empty() && partial_.has_value()) {
      QUIRE_RETURN_IF_ERROR(Replace(*file, plan));
    }
    report.files.push_back(plan.file());
  }
  return report;
}

absl::Status Repair::CheckIsSameArchive() const {
  const ArchiveDirectory& own = places_[0].directory;
  const auto refuse = [&](absl::string_view why) {
    return absl::FailedPreconditionError(
        absl::StrCat(places_[0].manifest_status.message(), "; ", why,
                     ": copy the whole directory instead"));
  };
  if (!manifest_.segments.empty() && planner_.own_footer_count() == 0) {
    return refuse(absl::StrCat("no segment in ", own.path,
                               " shows that it is a copy of the same archive"));
  }
  if (planner_.foreign_footer_count() > 0) {
    return refuse(absl::StrCat(own.path, " has a segment of another archive"));
  }
  std::set<std::string> names;
  for (const File& file : Files()) {
    names.insert(file.name);
  }
  std::error_code error;
  for (auto entry = std::filesystem::directory_iterator(own.path, error);
       !error && entry != std::filesystem::directory_iterator();
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (IsSegmentFileName(name) && !names.contains(name)) {
      return refuse(absl::StrCat(own.path, " has ", name,
                                 ", which the copy does not have: it may be "
                                 "an earlier state of the archive"));
    }
  }
  return error ? ErrnoStatus(error.value(), own.path, "list")
               : absl::OkStatus();
}

absl::Status Repair::Replace(const File& file, const FilePlan& plan) {
  const std::string path = absl::StrCat(partial_->name(), "/", plan.name());
  const FileCopies copies = OpenCopies(plan.name());
  if (!Write(plan, copies, /*share=*/true, partial_->fd(), path).ok()) {
    QUIRE_RETURN_IF_ERROR(
        Write(plan, copies, /*share=*/false, partial_->fd(), path));
  }
  FileCopies written;
  QUIRE_ASSIGN_OR_RETURN(ReadableFile opened,
                         OpenReadableFile(partial_->fd(), plan.name(), path));
  written.Add(std::move(opened));
  RepairPlanner planner(manifest_, [](uint64_t) {});
  if (!Plan(file, written, planner).IsWhole(written)) {
    return absl::UnavailableError(
        absl::StrCat(path,
                     ": differs from what was written to it; check the "
                     "device"));
  }
  return partial_->MoveFile(plan.name());
}

absl::Status Repair::Write(const FilePlan& plan, const FileCopies& copies,
                           bool share, int directory_fd,
                           const std::string& path) const {
  const UniqueFd fd(openat(directory_fd, plan.name().c_str(),
                           O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
                           0600));
  if (!fd.is_open()) {
    return ErrnoStatus(errno, path, "create");
  }
  const std::optional<ReadableFile>& old = copies[0];
  if (share &&
      (!old.has_value() || ioctl(fd.get(), FICLONE, old->fd.get()) != 0 ||
       ftruncate(fd.get(), static_cast<off_t>(plan.size_bytes())) != 0)) {
    return absl::UnavailableError("storage cannot be shared");
  }
  std::string buffer;
  const auto copy = [&](size_t source, uint64_t offset,
                        uint64_t end) -> absl::Status {
    while (offset < end) {
      buffer.resize(std::min(end - offset, kRepairPieceBytes));
      const auto& from = copies[source];
      if (!copies.Read(source, offset, AsMutableBytes(buffer))) {
        return absl::UnavailableError(
            absl::StrCat(from.has_value() ? from->path : plan.name(),
                         ": changed or became unreadable; try again"));
      }
      QUIRE_RETURN_IF_ERROR(WriteAt(fd.get(), offset, AsBytes(buffer), path));
      offset += buffer.size();
    }
    return absl::OkStatus();
  };
  uint64_t done = 0;
  for (const Patch& patch : plan.patches()) {
    if (!share) {
      QUIRE_RETURN_IF_ERROR(copy(0, done, patch.offset));
    }
    done = patch.offset + patch.size_bytes;
    QUIRE_RETURN_IF_ERROR(
        patch.bytes.empty()
            ? copy(patch.source, patch.offset, done)
            : WriteAt(fd.get(), patch.offset, AsBytes(patch.bytes), path));
  }
  if (!share) {
    QUIRE_RETURN_IF_ERROR(copy(0, done, plan.size_bytes()));
  }
  // The new file has owner and rights of the old one, or of the copy.
  for (size_t i = 0; i < copies.count(); ++i) {
    struct stat status;
    if (copies[i].has_value() && fstat(copies[i]->fd.get(), &status) == 0) {
      // Only root can give files to others.
      static_cast<void>(fchown(fd.get(), status.st_uid, status.st_gid) == 0);
      if (fchmod(fd.get(), status.st_mode & 07777) != 0) {
        return ErrnoStatus(errno, path, "set the rights of");
      }
      break;
    }
  }
  if (fsync(fd.get()) != 0) {
    return ErrnoStatus(errno, path, "sync");
  }
  // The file is then read back from the device.
  posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  return absl::OkStatus();
}

std::string UuidOf(const Manifest& manifest) {
  return manifest.Describe(0).uuid;
}

}  // namespace

bool RepairReport::IsWhole() const {
  return std::ranges::all_of(
      files, [](const RepairedFile& file) { return file.missing.empty(); });
}

absl::StatusOr<RepairReport> RepairArchive(const std::string& path,
                                           std::span<const std::string> copies,
                                           const RepairOptions& options) {
  std::error_code error;
  // Files are made next to the directory itself, not next to a link to it.
  std::string real_path = std::filesystem::canonical(path, error).string();
  if (error) {
    return ErrnoStatus(error.value(), path, "open the directory");
  }
  std::optional<PartialDirectory> partial;
  if (!options.dry_run) {
    // Before MANIFEST is read: a writer may replace it until then, and the
    // repair would restore the one that it read.
    QUIRE_ASSIGN_OR_RETURN(PartialDirectory acquired,
                           PartialDirectory::CreateForFiles(real_path));
    partial.emplace(std::move(acquired));
  }
  std::vector<Place> places;
  QUIRE_ASSIGN_OR_RETURN(Place target, OpenPlace(real_path));
  places.push_back(std::move(target));
  for (const std::string& copy : copies) {
    if (std::filesystem::equivalent(real_path, copy, error)) {
      return absl::FailedPreconditionError(absl::StrCat(
          copy, ": is the archive to repair itself; give a copy of it"));
    }
    QUIRE_ASSIGN_OR_RETURN(Place place, OpenPlace(copy));
    if (absl::IsNotFound(place.manifest_status)) {
      return place.manifest_status;
    }
    places.push_back(std::move(place));
  }
  const Place* chosen = nullptr;
  for (const Place& place : places) {
    if (!place.manifest_status.ok()) {
      continue;
    }
    const Manifest& manifest = place.directory.manifest;
    if (chosen == nullptr) {
      chosen = &place;
    } else if (manifest.uuid != chosen->directory.manifest.uuid) {
      return absl::FailedPreconditionError(absl::StrCat(
          place.directory.path, ": has the uuid ", UuidOf(manifest),
          ", expected that of ", chosen->directory.path, ", ",
          UuidOf(chosen->directory.manifest),
          ": it is not a copy of the same archive"));
    }
  }
  if (chosen == nullptr) {
    for (const Place& place : places) {
      if (absl::IsFailedPrecondition(place.manifest_status)) {
        return place.manifest_status;
      }
    }
    return absl::DataLossError(absl::StrCat(
        places[0].manifest_status.message(),
        "; nor has a copy an undamaged MANIFEST: quired salvage saves "
        "documents without it"));
  }
  const Manifest manifest = chosen->directory.manifest;
  std::string manifest_bytes = chosen->manifest_bytes;
  return Repair(std::move(places), manifest, std::move(manifest_bytes), options,
                std::move(partial))
      .Run();
}

}  // namespace quire
