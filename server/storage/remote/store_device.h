// SPDX-License-Identifier: GPL-3.0-or-later
//
// The device of a bucket: local copies in front of an object store.
#ifndef QUIRE_SERVER_STORAGE_REMOTE_STORE_DEVICE_H_
#define QUIRE_SERVER_STORAGE_REMOTE_STORE_DEVICE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"

#include "codecs/base/mutex.h"
#include "server/storage/device/device.h"
#include "server/storage/remote/chunk_cache.h"
#include "server/storage/remote/chunk_fetcher.h"
#include "server/storage/remote/transfer_loop.h"

namespace quire {

// The copies that descriptors read. Thread-safe.
class RemoteFileTable {
 public:
  // Keeps an entry until it is destroyed.
  class Registration;

  // `fd` reads the local copy `file`. A later registration of the same
  // descriptor replaces this one.
  static std::shared_ptr<const Registration> Register(
      const std::shared_ptr<RemoteFileTable>& table, int fd,
      CachedFilePtr file);

  // Null for other descriptors.
  CachedFilePtr Find(int fd) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Remove(int fd, const CachedFile* file) ABSL_LOCKS_EXCLUDED(mutex_);

  mutable Mutex mutex_;
  absl::flat_hash_map<int, CachedFilePtr> files_ ABSL_GUARDED_BY(mutex_);
};

// A read whose chunks are all present goes to the local engine at once. Other
// reads are divided: present chunks are read locally, each run of missing ones
// is one GET, unless it joins another one's. A local read that fails drops its
// chunks, which are then read from the store.
// Thread-safe.
class StoreDevice : public Device {
 public:
  // All must outlive it.
  struct Parts {
    TransferLoop& loop;
    ChunkCache& cache;
    ChunkFetcher& fetcher;
    std::shared_ptr<RemoteFileTable> files;
  };

  // `open_local` opens the engine for the local copies.
  // Errors: those of `open_local`.
  static absl::StatusOr<OpenedDevice> Open(const Parts& parts,
                                           const DeviceFactory& open_local,
                                           Done done);
  ~StoreDevice() override;

  void Submit(std::span<const DeviceRead> reads) override
      ABSL_LOCKS_EXCLUDED(mutex_);

  void SetPatience(Patience patience) override {
    local_->SetPatience(std::move(patience));
  }

  void Invalidate(int fd, FileOffset offset, uint64_t size_bytes) override;

  std::string name() const override { return "store+" + local_->name(); }

 private:
  struct Gather;

  struct LocalRead {
    CachedFilePtr file;
    ChunkRange range;
    DeviceRead read;
    // Null: a whole read of the caller.
    std::shared_ptr<Gather> gather = nullptr;
  };

  StoreDevice(const Parts& parts, Done done)
      : parts_(parts), done_(std::move(done)) {}

  // Both on the loop's thread.
  void Begin(const std::shared_ptr<Gather>& gather);
  void BeginPart(const std::shared_ptr<Gather>& gather, ChunkRange range);
  void EndPart(const std::shared_ptr<Gather>& gather, uint64_t start,
               const absl::Status& status);

  // Records a local read of pinned chunks; the caller submits the result.
  DeviceRead NoteLocal(const LocalRead& local) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnLocalResults(std::span<DeviceResult> results)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends `count` reads, whose results were delivered.
  void NoteDelivered(size_t count) ABSL_LOCKS_EXCLUDED(mutex_);

  const Parts parts_;
  const Done done_;
  Mutex mutex_;
  CondVar all_ended_;
  uint64_t next_local_id_ ABSL_GUARDED_BY(mutex_) = 1;
  absl::flat_hash_map<uint64_t, LocalRead> local_reads_ ABSL_GUARDED_BY(mutex_);
  // Reads without a result.
  uint64_t read_count_ ABSL_GUARDED_BY(mutex_) = 0;
  // Last: its threads call back until it is closed.
  std::unique_ptr<Device> local_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_REMOTE_STORE_DEVICE_H_
