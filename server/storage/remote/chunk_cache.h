// SPDX-License-Identifier: GPL-3.0-or-later
//
// Sparse local copies of remote files, bounded in bytes.
#ifndef QUIRE_SERVER_STORAGE_REMOTE_CHUNK_CACHE_H_
#define QUIRE_SERVER_STORAGE_REMOTE_CHUNK_CACHE_H_

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/base/mutex.h"
#include "codecs/base/unique_fd.h"
#include "server/storage/remote/chunk_map.h"
#include "server/storage/remote/store_address.h"

namespace quire {

// Memory of chunk maps, in bytes. Thread-safe.
class MapMemory {
 public:
  // Counts a map until it is destroyed.
  class Share {
   public:
    Share(std::shared_ptr<MapMemory> memory, uint64_t bytes)
        : memory_(std::move(memory)), bytes_(bytes) {}

    ~Share() { memory_->used_bytes_ -= bytes_; }

    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

   private:
    const std::shared_ptr<MapMemory> memory_;
    const uint64_t bytes_;
  };

  // Null if the limit forbids it.
  static std::unique_ptr<const Share> Take(
      const std::shared_ptr<MapMemory>& memory, uint64_t bytes);

  // Concerns later maps only. Without a limit before the first call.
  void SetLimit(uint64_t bytes_max) { bytes_max_ = bytes_max; }

  uint64_t bytes_max() const { return bytes_max_; }

 private:
  std::atomic<uint64_t> used_bytes_ = 0;
  std::atomic<uint64_t> bytes_max_ = UINT64_MAX;
};

// A sparse copy of one object. The cache owns its chunks.
struct CachedFile {
  CachedFile(std::string local_path, UniqueFd open_fd, ChunkMap chunk_map,
             std::unique_ptr<const MapMemory::Share> share)
      : path(std::move(local_path)),
        fd(std::move(open_fd)),
        map_share(std::move(share)),
        map(std::move(chunk_map)) {}

  const std::string path;
  // Open for reading and writing.
  const UniqueFd fd;
  // Counts the memory of `map`.
  const std::unique_ptr<const MapMemory::Share> map_share;
  // Identity of the local file.
  uint64_t device = 0;
  uint64_t inode = 0;
  // Guarded by ChunkCache::mutex_; its sizes never change.
  ChunkMap map;
  // Guarded by the same: no manifest names the file any more.
  bool is_retired = false;
  // Set before the first GET.
  std::shared_ptr<const StoreAddress> address;
  std::string object;
  // ETag that all answers must have; learned from the first if empty. Of the
  // thread of the transfers, and of the opening while no GET is in flight.
  std::string etag;
  // The object is another one than at the opening, or is gone.
  std::atomic<bool> is_stale = false;
};

using CachedFilePtr = std::shared_ptr<CachedFile>;

// Chunks are written by one thread, that of the transfers. Others pin present
// chunks while they read them. Bytes written and not evicted never exceed the
// limit. Eviction is by CLOCK over all files and leaves kept chunks.
// Thread-safe, except as stated. The mutex is never held across I/O.
class ChunkCache {
 public:
  struct Options {
    std::string directory;
    uint64_t size_bytes_max = 0;
    // A multiple of 4096.
    uint32_t chunk_size_bytes = 256 << 10;
    // Only look: do not lock the directory, and use another one inside it that
    // the destructor removes.
    bool is_trial = false;
  };

  struct Stats {
    // Chunks that reads found present, and that they did not.
    uint64_t hit_chunks = 0;
    uint64_t missed_chunks = 0;
    uint64_t evicted_chunks = 0;
    // Chunks dropped because a block in them was damaged.
    uint64_t invalidated_chunks = 0;
    // GETs that were served without caching: no space, or an error of the disk.
    uint64_t uncached_gets = 0;
    uint64_t used_bytes = 0;
    uint64_t size_bytes_max = 0;
  };

  // Creates the directory, checks that its file system supports holes, and
  // locks it against other processes. Errors: FailedPrecondition  no holes
  // there, or another process uses it.
  //         InvalidArgument     an option is out of range.
  //         Unavailable         from the system.
  static absl::StatusOr<std::unique_ptr<ChunkCache>> Open(
      const Options& options);
  ~ChunkCache();
  ChunkCache(const ChunkCache&) = delete;
  ChunkCache& operator=(const ChunkCache&) = delete;

  // The directory for files.
  const std::string& directory() const { return directory_; }

  uint32_t chunk_size_bytes() const { return options_.chunk_size_bytes; }

  // Creates a directory in directory(), unless it exists.
  // Errors: FailedPrecondition  something else is there, or another user's
  //                             directory; Unavailable.
  absl::Status MakeDirectory(const std::string& path) const;

  // Opens the copy at `path`, or creates an empty one, which replaces a link,
  // and a file of another size or owner or with other names. Chunks that are
  // there count as present. Chunk 0 and those that `kept` names are kept.
  // Blocks on I/O. Errors: ResourceExhausted  the maps of all files exceed
  // their limit.
  //         Unavailable        from the system.
  absl::StatusOr<CachedFilePtr> OpenFile(const std::string& path,
                                         uint64_t size_bytes,
                                         const KeptParts& kept)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Limit on the memory of the maps of all files, also of files that are
  // retired and still read. Concerns files that are opened later.
  void SetMapBytesMax(uint64_t bytes_max) { maps_->SetLimit(bytes_max); }

  uint64_t map_bytes_max() const { return maps_->bytes_max(); }

  // Returns the copy that an open descriptor reads; null if there is none.
  CachedFilePtr FindFile(int fd) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Forgets a file that no manifest names, and drops its chunks. Its name is
  // removed by the caller. Reads of it continue uncached.
  void Retire(const CachedFilePtr& file) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns all files below a directory.
  std::vector<CachedFilePtr> FilesBelow(const std::string& directory) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Counts bytes of files that are no sparse copies; may be negative.
  void AddOtherBytes(int64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);

  // Pins all chunks of the range if all are present.
  bool PinAll(CachedFile& file, ChunkRange range) ABSL_LOCKS_EXCLUDED(mutex_);

  // Divides the range, and pins the chunks of its present runs.
  std::vector<ChunkRun> PinRuns(CachedFile& file, ChunkRange range)
      ABSL_LOCKS_EXCLUDED(mutex_);

  void Unpin(CachedFile& file, ChunkRange range) ABSL_LOCKS_EXCLUDED(mutex_);

  // Marks the chunks of a block that is damaged as missing.
  void Invalidate(CachedFile& file, ChunkRange range)
      ABSL_LOCKS_EXCLUDED(mutex_);

  bool AllPresent(CachedFile& file, ChunkRange range) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // True if the copy has no chunks, nor space for any.
  bool IsEmpty(const CachedFile& file) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Makes space for missing chunks, by eviction, and reserves it. After an
  // error the chunks are not cached. One thread at a time calls these four.
  // Errors: ResourceExhausted  the limit: other chunks are kept or in use.
  //         Unavailable        the disk failed a moment ago; or the file is
  //                            retired.
  absl::Status Reserve(CachedFile& file, ChunkRange range)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Writes bytes of reserved chunks. Errors: Unavailable  no space on the disk,
  // or an error; nothing is cached for some seconds then.
  absl::Status Write(CachedFile& file, uint64_t offset, ByteView bytes)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Makes reserved chunks, wholly written, present; or drops them.
  void Commit(CachedFile& file, ChunkRange range) ABSL_LOCKS_EXCLUDED(mutex_);
  void Abandon(CachedFile& file, ChunkRange range) ABSL_LOCKS_EXCLUDED(mutex_);

  Stats GetStats() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  explicit ChunkCache(const Options& options) : options_(options) {}

  struct Victim {
    CachedFilePtr file;
    uint64_t chunk = 0;
  };

  // Selects a chunk and marks it as missing and being written. Unset if no
  // chunk can be evicted.
  std::optional<Victim> TakeVictim() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropChunks(CachedFile& file, ChunkRange range)
      ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  const std::shared_ptr<MapMemory> maps_ = std::make_shared<MapMemory>();
  std::string directory_;
  // Owner of the files that this process creates there.
  uid_t file_owner_ = 0;
  UniqueFd lock_;
  mutable Mutex mutex_;
  std::vector<CachedFilePtr> files_ ABSL_GUARDED_BY(mutex_);
  // The hand of the clock.
  size_t hand_file_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t hand_chunk_ ABSL_GUARDED_BY(mutex_) = 0;
  Stats stats_ ABSL_GUARDED_BY(mutex_);
  // No chunk is cached before this, after an error of the disk.
  std::chrono::steady_clock::time_point retry_at_ ABSL_GUARDED_BY(mutex_);
  absl::Status disk_error_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_REMOTE_CHUNK_CACHE_H_
