// SPDX-License-Identifier: GPL-3.0-or-later
//
// Object stores as the rest of the server sees them: objects read as a whole,
// local copies, and devices for their blocks.
#ifndef QUIRE_SERVER_STORAGE_REMOTE_REMOTE_STORE_H_
#define QUIRE_SERVER_STORAGE_REMOTE_REMOTE_STORE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "codecs/base/bytes.h"
#include "codecs/base/mutex.h"
#include "server/storage/device/device.h"
#include "server/storage/device/file_placement.h"
#include "server/storage/remote/chunk_cache.h"
#include "server/storage/remote/chunk_fetcher.h"
#include "server/storage/remote/credential_keeper.h"
#include "server/storage/remote/object_reader.h"
#include "server/storage/remote/store_address.h"
#include "server/storage/remote/store_device.h"
#include "server/storage/remote/transfer_loop.h"

namespace quire {

struct RemoteStoreOptions {
  // Affects behaviour. Of s3:// only: URL of a store other than Amazon's; and
  // the region that requests are signed for.
  std::string endpoint;
  std::string region = "us-east-1";
  // PEM file of the certificates to trust, in place of the system's; empty:
  // AWS_CA_BUNDLE, or the system's.
  std::string ca_file = {};
  // Directory of the local copies, and their limit.
  std::string cache_directory;
  uint64_t cache_size_bytes = 0;
  // Only look: see ChunkCache::Options.
  bool is_trial = false;
  // Memory of objects that are read whole, above all manifests, with what their
  // readers make of them. Larger objects than a sixth of it are refused.
  uint64_t object_memory_bytes = uint64_t{96} << 20;
  // Of what happens to credentials; may be null.
  CredentialKeeper::Notice notice = {};

  // Age of a local copy up to which an archive is opened from it while its
  // store does not answer; zero: never. See RemoteArchives.
  absl::Duration stale_max = absl::ZeroDuration();

  // Affects performance. Unit of GETs and of eviction, and GETs at a time.
  uint32_t chunk_size_bytes = 256 << 10;
  uint32_t requests_max = 64;
};

inline constexpr uint32_t kStoreRequestsMax = 1024;

// Thread-safe, except for the destructor.
class RemoteStore {
 public:
  struct Stats {
    ObjectReaderStats requests;
    ChunkCache::Stats cache;
    // See CredentialKeeper::failure_count().
    uint64_t credential_failures = 0;
  };

  // Called on the thread of the transfers, which it must not block.
  using Report = ChunkFetcher::Report;

  // `engine` reads the local copies. Starts two threads. Reads the files of
  // credentials only to check them.
  // Errors: InvalidArgument  ca_file has no certificates.
  //         those of ChunkCache::Open(), TransferLoop::Start() and
  //         ReadCredentialSettings().
  static absl::StatusOr<std::unique_ptr<RemoteStore>> Open(
      const RemoteStoreOptions& options, DeviceEngine engine, Report report);

  // REQUIRES: all devices are closed, and no other call runs.
  ~RemoteStore();
  RemoteStore(const RemoteStore&) = delete;
  RemoteStore& operator=(const RemoteStore&) = delete;

  // Memory of transfers at a time, in bytes, without chunk maps
  // (ChunkCache::SetMapBytesMax()).
  static uint64_t MemoryBytes(const RemoteStoreOptions& options);

  absl::StatusOr<StoreAddress> ParseAddress(absl::string_view url) const {
    return ParseStoreAddress(url, options_.endpoint, options_.region);
  }

  ChunkCache& cache() { return *cache_; }

  struct Object {
    std::string bytes;
    std::string etag;
    // Held by a large object: it is the only one at a time.
    std::shared_ptr<void> turn = nullptr;
  };

  // Reads an object of at most `size_bytes_max`. Unset if it still has the ETag
  // `none_match`, unless that is empty. Blocks until the answer, the last retry
  // or `cancel`, which may be null; and for a large object until there is no
  // other.
  // Errors: those of ObjectGet::End; Cancelled; FailedPrecondition  it is too
  //         large, for `size_bytes_max` or for the memory; the message says
  //         which.
  absl::StatusOr<std::optional<Object>> ReadObject(
      const std::shared_ptr<const StoreAddress>& address,
      const std::string& object, const std::string& none_match,
      uint64_t size_bytes_max, const std::atomic<bool>* cancel);

  // Chunks of a local copy.
  struct Part {
    CachedFilePtr file;
    ChunkRange range;
  };

  // Brings all missing chunks of the parts into the cache. Blocks, as above.
  // Errors: those of ObjectGet::End and of ChunkCache::Reserve() and Write();
  //         Cancelled.
  absl::Status FillChunks(const std::vector<Part>& parts,
                          const std::atomic<bool>* cancel);

  // Reads a part of an open local copy, like pread(), and before it, if chunks
  // are missing, up to 4 MiB from there into the cache. Unset if `fd` is no
  // local copy. Blocks, as above.
  // Errors: as FillChunks(); DataLoss  the object is missing; Unavailable.
  std::optional<absl::StatusOr<size_t>> ReadAt(int fd, uint64_t offset,
                                               MutableByteView out,
                                               const std::atomic<bool>* cancel);

  // Placement of an open local copy, for the reads of its blocks; unknown if
  // `fd` is none.
  std::optional<FilePlacement> Place(int fd);

  // Opens the device of a bucket.
  DeviceFactory DeviceOpener();

  uint32_t requests_max() const { return options_.requests_max; }

  // See ObjectReader.
  void SetStopTime(LoopTime time) { reader_->SetStopTime(time); }

  // Reads the files of credentials again and, if a request has needed any, asks
  // for them. Blocks, for at most 10 s. The old ones stay in force at an error.
  // Errors: those of ReadCredentialSettings() and CredentialKeeper::Reload().
  absl::Status ReloadCredentials();

  Stats GetStats() const;

 private:
  // A turn that one holder has at a time; outlives the store.
  struct LargeObjects {
    Mutex mutex;
    CondVar changed;
    bool is_taken ABSL_GUARDED_BY(mutex) = false;
  };

  // Errors: Cancelled.
  absl::StatusOr<std::shared_ptr<void>> TakeTurn(
      const std::atomic<bool>* cancel);
  // FillChunks() for the missing chunks of a range.
  absl::Status FillMissing(const CachedFilePtr& file, ChunkRange range,
                           const std::atomic<bool>* cancel);
  // ReadObject() without a turn.
  // Errors: those of ObjectGet::End; Cancelled.
  absl::StatusOr<std::optional<Object>> ReadOnce(
      const std::shared_ptr<const StoreAddress>& address,
      const std::string& object, const std::string& none_match,
      uint64_t size_bytes_max, const std::atomic<bool>* cancel);

  explicit RemoteStore(const RemoteStoreOptions& options, DeviceEngine engine)
      : options_(options), engine_(engine) {}

  const RemoteStoreOptions options_;
  const DeviceEngine engine_;
  const std::shared_ptr<LargeObjects> large_ = std::make_shared<LargeObjects>();
  const std::shared_ptr<RemoteFileTable> files_ =
      std::make_shared<RemoteFileTable>();
  std::unique_ptr<ChunkCache> cache_;
  // Its tasks use what follows: it is stopped first.
  std::unique_ptr<TransferLoop> loop_;
  std::unique_ptr<CredentialKeeper> credentials_;
  std::unique_ptr<ObjectReader> reader_;
  std::unique_ptr<ChunkFetcher> fetcher_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_REMOTE_REMOTE_STORE_H_
