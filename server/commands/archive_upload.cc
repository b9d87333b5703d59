// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/commands/archive_upload.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "server/archive/files/archive_directory.h"
#include "server/archive/files/file_io.h"
#include "server/archive/files/small_file.h"
#include "server/archive/format/archive_format.h"
#include "server/archive/format/segment_format.h"
#include "server/commands/replaced_objects.h"

namespace quire {
namespace {

namespace fs = std::filesystem;

constexpr char kStageName[] = "archive.quire";

}  // namespace

absl::StatusOr<std::unique_ptr<ArchiveUpload>> ArchiveUpload::Open(
    const std::string& url, const StoreArguments& arguments,
    const std::atomic<bool>* cancel) {
  QUIRE_ASSIGN_OR_RETURN(const RemoteStoreOptions options,
                         MakeStoreOptions(arguments));
  QUIRE_ASSIGN_OR_RETURN(
      StoreAddress address,
      ParseStoreAddress(url, options.endpoint, options.region));
  if (!address.is_s3 || address.key_prefix.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "an archive is uploaded to s3://BUCKET/PREFIX, got ", QuotedText(url)));
  }
  std::unique_ptr<ArchiveUpload> upload(new ArchiveUpload());
  upload->url_ = address.url;
  QUIRE_ASSIGN_OR_RETURN(upload->client_,
                         BucketClient::Open({.region = options.region,
                                             .ca_file = options.ca_file,
                                             .cancel = cancel}));
  upload->writer_ =
      std::make_unique<BucketWriter>(*upload->client_, std::move(address));
  return upload;
}

absl::StatusOr<std::string> ArchiveUpload::FindManifest() {
  QUIRE_ASSIGN_OR_RETURN(const auto found, writer_->Find(kManifestFileName));
  return found.has_value() ? found->etag : "";
}

absl::Status ArchiveUpload::CheckIsNew() {
  QUIRE_ASSIGN_OR_RETURN(const std::string found, FindManifest());
  return !found.empty()
             ? absl::AlreadyExistsError(absl::StrCat(
                   url_,
                   ": has an archive already, and servers may read it; give "
                   "another prefix, or remove the archive"))
             : absl::OkStatus();
}

absl::Status ArchiveUpload::AddFile(const std::string& directory,
                                    const std::string& name) {
  if (!added_.insert(name).second) {
    return absl::OkStatus();
  }
  const std::string path = absl::StrCat(directory, "/", name);
  QUIRE_ASSIGN_OR_RETURN(const ReadableFile file,
                         OpenReadableFile(AT_FDCWD, path, path));
  std::string end(std::min<uint64_t>(file.size_bytes(), kTrailerSizeBytes),
                  '\0');
  QUIRE_RETURN_IF_ERROR(ReadExactly(file.fd.get(),
                                    file.size_bytes() - end.size(),
                                    AsMutableBytes(end), path));
  // Unset: there is no such object.
  const auto is_there = [&]() -> absl::StatusOr<std::optional<bool>> {
    QUIRE_ASSIGN_OR_RETURN(const auto found, writer_->Find(name));
    if (!found.has_value()) {
      return std::optional<bool>();
    }
    if (found->size_bytes != file.size_bytes()) {
      return std::optional<bool>(false);
    }
    QUIRE_ASSIGN_OR_RETURN(const std::string found_end,
                           writer_->ReadEnd(name, *found, end.size()));
    return std::optional<bool>(found_end == end);
  };
  QUIRE_ASSIGN_OR_RETURN(std::optional<bool> there, is_there());
  if (!there.has_value()) {
    const absl::Status status =
        writer_->Upload(name, file.fd.get(), file.size_bytes(), path);
    if (!absl::IsAborted(status)) {
      QUIRE_RETURN_IF_ERROR(status);
      ++uploaded_count_;
      uploaded_bytes_ += file.size_bytes();
      return absl::OkStatus();
    }
    // By another writer, or by a request whose answer was lost.
    QUIRE_ASSIGN_OR_RETURN(there, is_there());
  }
  if (there != true) {
    return absl::AlreadyExistsError(absl::StrCat(
        address().drive, "/", address().KeyOf(name),
        ": is another file than the one to upload: another writer is at work "
        "there, or another part has its number, or a run that was killed left "
        "it; only in the last case, delete it and repeat the command"));
  }
  ++kept_count_;
  return absl::OkStatus();
}

absl::Status ArchiveUpload::AddFiles(const std::string& directory) {
  std::error_code error;
  for (fs::directory_iterator entry(directory, error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (IsArchiveFileName(name) && name != kManifestFileName) {
      QUIRE_RETURN_IF_ERROR(AddFile(directory, name));
    }
  }
  return error ? absl::UnavailableError(absl::StrCat(
                     directory, ": cannot be listed: ", error.message()))
               : absl::OkStatus();
}

absl::Status ArchiveUpload::Publish(const std::string& directory,
                                    const std::string& replaced) {
  QUIRE_ASSIGN_OR_RETURN(
      const std::string manifest,
      ReadSmallFile(absl::StrCat(directory, "/", kManifestFileName),
                    kManifestFileSizeBytesMax));
  std::set<std::string> dropped;
  if (!replaced.empty()) {
    QUIRE_ASSIGN_OR_RETURN(dropped, RecordReplaced(manifest, replaced));
  }
  QUIRE_RETURN_IF_ERROR(PutManifest(manifest, replaced));
  for (const std::string& name : dropped) {
    std::cerr << "note: no longer a part of the archive: "
              << PrintableMessage(address().drive) << "/"
              << PrintableMessage(address().KeyOf(name))
              << "; a later append deletes it (--delete-replaced)\n";
  }
  return absl::OkStatus();
}

absl::StatusOr<std::set<std::string>> ArchiveUpload::RecordReplaced(
    absl::string_view manifest, const std::string& replaced) {
  QUIRE_ASSIGN_OR_RETURN(const auto found, writer_->Find(kManifestFileName));
  if (!found.has_value() || found->etag != replaced) {
    return AnotherWriter("MANIFEST has another ETag");
  }
  QUIRE_ASSIGN_OR_RETURN(
      const std::string old_manifest,
      writer_->ReadEnd(
          kManifestFileName, *found,
          std::min<uint64_t>(found->size_bytes, kManifestFileSizeBytesMax)));
  const auto old_names = ReplacedObjects::NamesIn(old_manifest);
  if (!old_names.ok()) {
    return absl::Status(
        old_names.status().code(),
        absl::StrCat(url_,
                     ": the MANIFEST to be replaced cannot be read, so the "
                     "objects that it names are unknown; restore or delete "
                     "it, and repeat the command (",
                     old_names.status().message(), ")"));
  }
  QUIRE_ASSIGN_OR_RETURN(const std::set<std::string> names,
                         ReplacedObjects::NamesIn(manifest));
  std::set<std::string> dropped;
  std::ranges::set_difference(*old_names, names,
                              std::inserter(dropped, dropped.end()));
  if (!dropped.empty()) {
    QUIRE_RETURN_IF_ERROR(
        ReplacedObjects(*client_, address()).Record(old_manifest, absl::Now()));
  }
  return dropped;
}

absl::Status ArchiveUpload::PutManifest(absl::string_view manifest,
                                        const std::string& replaced) {
  const absl::Status status =
      writer_
          ->Put(kManifestFileName, manifest,
                {.is_new = replaced.empty(), .etag = replaced})
          .status();
  if (!absl::IsAborted(status)) {
    return status;
  }
  // A request whose answer was lost may have put it.
  QUIRE_ASSIGN_OR_RETURN(const auto found, writer_->Find(kManifestFileName));
  if (found.has_value() && found->size_bytes == manifest.size()) {
    QUIRE_ASSIGN_OR_RETURN(
        const std::string bytes,
        writer_->ReadEnd(kManifestFileName, *found, manifest.size()));
    if (bytes == manifest) {
      return absl::OkStatus();
    }
  }
  return AnotherWriter(status.message());
}

absl::Status ArchiveUpload::AnotherWriter(absl::string_view why) const {
  return absl::AbortedError(absl::StrCat(
      url_,
      ": another writer changed the archive meanwhile, which stays as it is "
      "now; files that were uploaded are not named by its MANIFEST: delete "
      "them, and repeat the command (",
      why, ")"));
}

absl::Status ArchiveUpload::DeleteReplaced(absl::Duration grace, bool quiet) {
  if (grace == absl::InfiniteDuration()) {
    return absl::OkStatus();
  }
  QUIRE_ASSIGN_OR_RETURN(
      const ReplacedObjects::Report report,
      ReplacedObjects(*client_, address()).DeleteAfter(grace, absl::Now()));
  if (report.deleted_count > 0 && !quiet) {
    std::cerr << "  deleted "
              << FormatCounted(report.deleted_count, "replaced object",
                               "replaced objects")
              << ", " << FormatByteSize(report.deleted_size_bytes) << "\n";
  }
  if (report.part_count > 0) {
    std::cerr << "note: "
              << FormatCounted(report.part_count, "replaced object stays",
                               "replaced objects stay")
              << ", as parts name them; delete "
              << PrintableMessage(address().drive) << "/"
              << PrintableMessage(address().KeyOf(report.part))
              << " if that part is not needed\n";
  }
  for (const absl::Status& fault : report.faults) {
    std::cerr << "warning: not deleted: " << PrintableMessage(fault.message())
              << "\n";
  }
  return report.fault_count == 0
             ? absl::OkStatus()
             : absl::UnavailableError(absl::StrCat(
                   url_, ": ", report.fault_count,
                   " replaced objects could not be deleted; the archive is "
                   "whole, and the next append tries again"));
}

void ArchiveUpload::PrintSummary() const {
  std::cerr << "  uploaded " << FormatCounted(uploaded_count_, "file", "files")
            << ", " << FormatByteSize(uploaded_bytes_);
  if (kept_count_ > 0) {
    std::cerr << "; " << FormatCounted(kept_count_, "was", "were")
              << " there already";
  }
  if (writer_->removed_count() > 0) {
    std::cerr << "; removed "
              << FormatCounted(writer_->removed_count(), "unfinished upload",
                               "unfinished uploads");
  }
  std::cerr << "\n";
  const auto unfinished = writer_->ListUnfinished();
  if (!unfinished.ok()) {
    std::cerr << "warning: unfinished uploads cannot be listed: "
              << PrintableMessage(unfinished.status().message()) << "\n";
  } else if (!unfinished->empty()) {
    std::cerr << "warning: "
              << FormatCounted(unfinished->size(), "upload", "uploads")
              << " below this prefix are unfinished, of other writers or of "
                 "killed ones, as of "
              << PrintableText(unfinished->front().key)
              << "; a lifecycle rule of the bucket removes such\n";
  }
}

absl::StatusOr<std::unique_ptr<UploadStage>> UploadStage::Make(
    const StoreAddress& address) {
  std::error_code error;
  const std::string parent = fs::temp_directory_path(error).string();
  if (error) {
    return absl::UnavailableError(
        absl::StrCat("TMPDIR must name a directory for segments before their "
                     "upload: ",
                     error.message()));
  }
  const std::string origin =
      absl::StrCat(address.origin, address.PathOf(kManifestFileName));
  const std::string directory =
      absl::StrFormat("%s/quire-upload-%d-%016x", parent, geteuid(),
                      Checksum64(AsBytes(origin)));
  if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return ErrnoStatus(errno, directory, "create");
  }
  struct stat status = {};
  if (lstat(directory.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) ||
      status.st_uid != geteuid() || (status.st_mode & 0022) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(directory,
                     ": is not a directory of this user alone; remove it, or "
                     "set TMPDIR"));
  }
  return std::unique_ptr<UploadStage>(new UploadStage(directory));
}

UploadStage::~UploadStage() {
  // A build to resume may be there.
  rmdir(directory_.c_str());
}

std::string UploadStage::archive_path() const {
  return absl::StrCat(directory_, "/", kStageName);
}

void UploadStage::RemoveArchive() {
  std::error_code ignored;
  fs::remove_all(archive_path(), ignored);
}

}  // namespace quire
