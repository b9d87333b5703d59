// SPDX-License-Identifier: GPL-3.0-or-later
//
// The way of an archive into a bucket: what readers find is whole or not there.
#ifndef QUIRE_SERVER_COMMANDS_ARCHIVE_UPLOAD_H_
#define QUIRE_SERVER_COMMANDS_ARCHIVE_UPLOAD_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "server/commands/store_options.h"
#include "server/storage/remote/bucket_client.h"
#include "server/storage/remote/bucket_writer.h"

namespace quire {

// Files get their final names, and MANIFEST comes last, under a condition. No
// other object is ever replaced: one with the size and the end of the file is
// taken for it, as an earlier run may have written it, and any other is an
// error. Thread-compatible; blocks.
class ArchiveUpload {
 public:
  // `url` is s3://BUCKET/PREFIX, or for a part s3://BUCKET/PREFIX/parts/NAME:
  // its segments lie in PREFIX. `cancel` may be null.
  // Errors: InvalidArgument  for the usage error; those of
  // BucketClient::Open().
  static absl::StatusOr<std::unique_ptr<ArchiveUpload>> Open(
      const std::string& url, const StoreArguments& arguments,
      const std::atomic<bool>* cancel);

  // Returns the ETag of MANIFEST; empty if there is none.
  absl::StatusOr<std::string> FindManifest();

  // Errors: AlreadyExists  there is a MANIFEST; those of BucketClient::Send().
  absl::Status CheckIsNew();

  // Uploads the file NAME of a directory as the object NAME, once, unless it is
  // there. Errors: AlreadyExists  another object is there; those of
  //         BucketWriter::Upload().
  absl::Status AddFile(const std::string& directory, const std::string& name);

  // Uploads all files of an archive in a directory but MANIFEST.
  absl::Status AddFiles(const std::string& directory);

  // Puts the MANIFEST of a directory in the place of the one with the ETag
  // `replaced`; empty: of none. Records objects that it does not name, before,
  // and prints them: DeleteReplaced() deletes them.
  // Errors: Aborted  another writer was faster. DataLoss, FailedPrecondition
  //         the MANIFEST to be replaced cannot be read.
  absl::Status Publish(const std::string& directory,
                       const std::string& replaced);

  // Deletes objects that were replaced `grace` ago (replaced_objects.h);
  // infinite: none. Prints their number, unless `quiet`, and those that could
  // not be deleted.
  // Errors: Unavailable  some could not; those of ReplacedObjects.
  absl::Status DeleteReplaced(absl::Duration grace, bool quiet);

  // Prints what was uploaded, and unfinished uploads of killed programs.
  void PrintSummary() const;

  const StoreAddress& address() const { return writer_->address(); }

 private:
  ArchiveUpload() = default;

  // Returns names in the MANIFEST in force that are not in the new one.
  absl::StatusOr<std::set<std::string>> RecordReplaced(
      absl::string_view manifest, const std::string& replaced);
  absl::Status PutManifest(absl::string_view manifest,
                           const std::string& replaced);
  absl::Status AnotherWriter(absl::string_view why) const;

  std::string url_;
  std::unique_ptr<BucketClient> client_;
  std::unique_ptr<BucketWriter> writer_;
  std::set<std::string> added_;
  uint64_t uploaded_count_ = 0;
  uint64_t uploaded_bytes_ = 0;
  uint64_t kept_count_ = 0;
};

// A directory for the files of a build whose archive goes to a bucket: one of
// each user and URL, below TMPDIR, so that a later run resumes or removes what
// a killed run left in it.
class UploadStage {
 public:
  // Errors: FailedPrecondition  another user's directory is there; Unavailable.
  static absl::StatusOr<std::unique_ptr<UploadStage>> Make(
      const StoreAddress& address);
  // Removes the directory if it is empty.
  ~UploadStage();
  UploadStage(const UploadStage&) = delete;
  UploadStage& operator=(const UploadStage&) = delete;

  // Path of the archive, where a build puts it.
  std::string archive_path() const;
  // Removes the archive.
  void RemoveArchive();

 private:
  explicit UploadStage(std::string directory)
      : directory_(std::move(directory)) {}

  const std::string directory_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_COMMANDS_ARCHIVE_UPLOAD_H_
