// SPDX-License-Identifier: GPL-3.0-or-later
//
// Archives in object stores, as local directories of sparse copies.
#ifndef QUIRE_SERVER_SERVICE_CATALOG_REMOTE_ARCHIVES_H_
#define QUIRE_SERVER_SERVICE_CATALOG_REMOTE_ARCHIVES_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "codecs/base/mutex.h"
#include "server/archive/format/manifest.h"
#include "server/service/catalog/archive_argument.h"
#include "server/service/catalog/copy_confirmations.h"
#include "server/storage/remote/remote_store.h"

namespace quire {

// ETags of the objects of one archive, by name. A file keeps them over
// restarts, a line each: NAME ETAG.
using ObjectTags = std::map<std::string, std::string>;

std::string FormatObjectTags(const ObjectTags& tags);

// Skips malformed lines: a tag that is lost is learned again.
ObjectTags ParseObjectTags(absl::string_view text);

enum class MayBeStale : bool { kNo, kYes };

// Brings the files of an archive that it is opened from into a local directory:
// MANIFEST, dictionary and symbol table, and of each segment the header and the
// indexes at its end. The rest of a segment is a hole until it is read. The
// archive is then opened like any other.
//
// A segment's copy belongs to its manifest if its end has the footer's
// checksum. The copy of another segment is replaced, never changed.
//
// With RemoteStoreOptions::stale_max an archive is opened from a whole copy
// while its store does not answer (copy_confirmations.h).
// Thread-safe, but no two calls at a time about one archive.
class RemoteArchives {
 public:
  // Errors: those of RemoteStore::Open().
  static absl::StatusOr<std::unique_ptr<RemoteArchives>> Open(
      const RemoteStoreOptions& options, DeviceEngine engine,
      RemoteStore::Report report);

  // Sets the path of an archive with a URL: a directory in the cache.
  // Errors: InvalidArgument  the URL is malformed.
  static absl::Status SetPath(const RemoteStoreOptions& options,
                              ArchiveArgument& argument);

  // Makes the local MANIFEST that of the store, by one conditional GET, with
  // dictionary, symbol table, and segments of the right size. Enough for
  // Archive::ReadOutline(). Blocks on I/O. `cancel` may be null.
  // With kYes a stale copy is enough if the store does not answer: its indexes
  // are here, too.
  // Errors: NotFound, PermissionDenied, Unavailable, Aborted  from the store.
  //         DataLoss, FailedPrecondition  as Archive::Open().
  //         ResourceExhausted             the cache is too small.
  //         Unavailable                   the cache's disk failed.
  //         Cancelled.
  absl::Status PrepareOutline(const ArchiveArgument& argument,
                              const std::atomic<bool>* cancel,
                              MayBeStale may_be_stale);

  // The same for header and indexes of all segments: enough for
  // Archive::Open(). REQUIRES: PrepareOutline() has succeeded.
  absl::Status PrepareIndexes(const ArchiveArgument& argument,
                              const std::atomic<bool>* cancel);

  // Space in the cache that the indexes of an archive take, which are never
  // evicted: of one whose MANIFEST was read, and of all local files below
  // `path`.
  uint64_t IndexBytes(const ArchiveArgument& argument);
  uint64_t KeptBytes(const std::string& path) const;

  // The error of the archive's store if it was silent a moment ago.
  std::optional<absl::Status> RecentSilence(const ArchiveArgument& argument);

  // Drops the indexes of an archive that were found damaged, so that they are
  // read from the store again.
  void DropIndexes(const ArchiveArgument& argument);

  // Counts the local copy of an archive that an earlier process left, so that
  // its chunks can be evicted, without a request. False if there is none, or
  // none that can be used: it is then removed, unless the disk failed. Enough
  // for Archive::ReadOutline(). Blocks on I/O.
  bool AdoptCopy(const ArchiveArgument& argument);

  // True if there is a local copy that is counted.
  bool HasCopy(const ArchiveArgument& argument) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Removes a local copy. Reads of it continue uncached.
  void RemoveCopy(const ArchiveArgument& argument);

  // Number of archives with a local copy.
  size_t copy_count() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Removes files in the archive's directory that its manifest does not name.
  void RemoveUnnamed(const ArchiveArgument& argument);

  // Removes the directories of all other archives.
  void RemoveOthers(const std::vector<ArchiveArgument>& wanted);

  RemoteStore& store() { return *store_; }

  const CopyConfirmations& confirmations() const { return confirmations_; }

 private:
  struct State {
    std::shared_ptr<const StoreAddress> address;
    Manifest manifest;
    // Checksum of the local MANIFEST.
    uint64_t manifest_checksum = 0;
    ObjectTags tags;
    // Files of dictionary and segments.
    std::vector<CachedFilePtr> files;
    uint64_t other_bytes = 0;
  };

  RemoteArchives(std::unique_ptr<RemoteStore> store, absl::Duration stale_max)
      : store_(std::move(store)), confirmations_(stale_max) {}

  State& StateOf(const ArchiveArgument& argument) ABSL_LOCKS_EXCLUDED(mutex_);
  // Sets address and tags, once.
  absl::Status BeginState(const ArchiveArgument& argument, State& state);
  // PrepareOutline() without stale copies.
  absl::Status PrepareFromStore(const ArchiveArgument& argument, State& state,
                                const std::atomic<bool>* cancel);
  // Notes what the outcome of a request says about the local copy.
  void NoteWord(const ArchiveArgument& argument, const State& state,
                const absl::Status& outcome);
  // Makes a whole local copy stale, as the store was silent.
  // Errors: Unavailable  it is too old, or not whole; begins with `silence`.
  absl::Status UseStaleCopy(const ArchiveArgument& argument, State& state,
                            const absl::Status& silence);
  // Opens all local files, which must be whole.
  // Errors: Unavailable  the reason, as the end of "its local copy ...".
  absl::Status OpenWholeCopy(const ArchiveArgument& argument, State& state);
  // An archive that cannot be opened must not displace the copies of others.
  absl::Status CheckMapsFitAlone(const ArchiveArgument& argument,
                                 const Manifest& manifest) const;
  // Counts the small files of an archive.
  void CountOthers(const ArchiveArgument& argument, State& state);
  // Removes a directory that this class wrote, with all that is known of it.
  void RemoveDirectory(const std::string& path) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the new MANIFEST; unset if it is unchanged and whole. Its ETag
  // joins `state` with the local copy: until then, the store must send it
  // again.
  absl::StatusOr<std::optional<RemoteStore::Object>> ReadNewManifest(
      const ArchiveArgument& argument, State& state,
      const std::atomic<bool>* cancel);
  absl::StatusOr<CachedFilePtr> OpenCopy(const ArchiveArgument& argument,
                                         const State& state,
                                         const std::string& name,
                                         uint64_t size_bytes,
                                         const KeptParts& kept);
  // Puts an empty copy in the place of another object's.
  absl::StatusOr<CachedFilePtr> ReplaceCopy(const CachedFilePtr& old,
                                            const State& state,
                                            const KeptParts& kept);
  absl::StatusOr<CachedFilePtr> OpenSegment(const ArchiveArgument& argument,
                                            const State& state,
                                            const ManifestSegment& segment);
  absl::Status ReadSymbolTable(const ArchiveArgument& argument, State& state,
                               const std::atomic<bool>* cancel);
  // Reads the kept chunks of the files and notes their ETags.
  absl::Status FillKept(const std::vector<CachedFilePtr>& files, State& state,
                        const std::atomic<bool>* cancel);
  absl::Status WriteTags(const ArchiveArgument& argument, const State& state);

  const std::unique_ptr<RemoteStore> store_;
  CopyConfirmations confirmations_;
  mutable Mutex mutex_;
  // By path; addresses do not change.
  std::map<std::string, std::unique_ptr<State>> states_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CATALOG_REMOTE_ARCHIVES_H_
