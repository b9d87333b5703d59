// SPDX-License-Identifier: GPL-3.0-or-later
//
// Decoded blocks, from the cache or from a device: what the service asks for
// and all it sees of storage.
#ifndef QUIRE_SERVER_STORAGE_BLOCK_STORE_H_
#define QUIRE_SERVER_STORAGE_BLOCK_STORE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/mutex.h"
#include "server/storage/base/block_types.h"
#include "server/storage/cache/block_cache.h"
#include "server/storage/device/device.h"
#include "server/storage/device/drive_kind.h"
#include "server/storage/fetch/block_fetch.h"
#include "server/storage/fetch/buffer_pool.h"
#include "server/storage/fetch/decode_pool.h"
#include "server/storage/fetch/drive_description.h"
#include "server/storage/fetch/drive_set.h"
#include "server/storage/fetch/in_flight_table.h"
#include "server/storage/fetch/read_memory.h"
#include "server/storage/scheduler/scheduler.h"

namespace quire {

struct BlockOutcome;

struct BlockStoreOptions {
  // Affects memory. The cache holds at most this much: blocks, each rounded up
  // to whole pages, and what is kept about them. 0: no cache.
  uint64_t cache_size_bytes = uint64_t{256} << 20;
  // Device reads and decoded blocks that are neither cached nor handed out yet,
  // and the pages that are kept for the next of them. A block that needs more
  // is still read, alone. Not in either bound: blocks that callers hold on to
  // after the cache let go of them, and about 400 bytes for each fetch pending.
  uint64_t buffers_size_bytes_max = uint64_t{64} << 20;
  // Fetches that may wait; past it Fetch() fails with ResourceExhausted.
  uint32_t pending_fetches_max = 1 << 17;

  // Affects performance.
  // 0: one for each core.
  uint32_t decode_threads = 0;
  using Engine = DeviceEngine;
  Engine engine = Engine::kAuto;
  // Reads in flight at each drive.
  uint32_t device_depth = 32;
  // Whether extents that have a direct_fd are read through it, widened to its
  // alignment; where that fails they are read again through their fd.
  bool direct_io = false;
  // What is read from: each drive has its own queue and engine. None: one of
  // which nothing is known. A drive model brings its own.
  std::vector<DriveInfo> drives = {};
  // Makes reads take as long as this drive would; empty: as long as they take.
  // One of DrivePresets() (model/drive_presets.h).
  std::string device_model = {};
};

// Monotonous counters and current levels, for metrics.
struct BlockStoreStats {
  // Each Lookup() that found its block and each Fetch() counts once.
  uint64_t cache_hits = 0;
  uint64_t cache_misses = 0;
  uint64_t cache_evictions = 0;
  uint64_t cache_size_bytes = 0;
  // What the cache may hold now.
  uint64_t cache_capacity_bytes = 0;
  uint64_t cache_blocks = 0;
  // Fetches that found one for the same block in flight.
  uint64_t joined_fetches = 0;
  uint64_t device_reads = 0;
  uint64_t device_read_bytes = 0;
  uint64_t device_errors = 0;
  // Each part of a block that is decoded in parts counts by itself.
  uint64_t blocks_decoded = 0;
  // Blocks of which all was decoded, and those of which some parts were.
  uint64_t whole_decodes = 0;
  uint64_t partial_decodes = 0;
  uint64_t decoded_bytes = 0;
  // Blocks that callers got an error for because of a checksum, a codec or a
  // file that ends early.
  uint64_t decode_failures = 0;
  // Blocks that were read a second time, because of a device error or because
  // their bytes did not decode; and those of them whose second read was good.
  uint64_t repeated_blocks = 0;
  uint64_t recovered_blocks = 0;
  uint64_t cancelled_fetches = 0;
  // Levels: fetches not yet at the device, and reads at the device.
  uint64_t queued_fetches = 0;
  uint64_t device_reads_in_flight = 0;
  uint64_t buffers_size_bytes = 0;
  // As Drives() has them.
  std::vector<DriveStats> drives = {};
};

// The way of a block that is not cached:
//
//   Fetch()            enters the block in the table of in-flight blocks, or
//                      joins it there (in_flight_table.h); the queue of its
//                      drive has one request for each run of neighbours that
//                      are asked for together (drive_queue.h)
//   Plan()             the drives, in turn, join requests into reads whose
//                      memory is reserved (drive_set.h, read_memory.h);
//                      StartPlanned() hands them to the devices
//   OnDeviceResults()  device thread: the blocks that were read become decode
//                      tasks; plans again
//   RunDecodeTask()    decode pool: decodes and caches (decode_task.h), takes
//                      the blocks out of the table or enqueues a damaged one
//                      once more; plans again; answers the fetches
//
// One mutex guards the table, the queues and the account of memory. Blocks that
// Lookup() finds take only the lock of their shard of the cache. No lock is
// held across I/O, decoding, callbacks or the destruction of what belongs to
// callers.
// Thread-safe.
class BlockStore {
 public:
  using BlockPtr = quire::BlockPtr;
  using Done = FetchDone;
  using FetchId = quire::FetchId;

  // Starts the device threads and the decode pool. With `open_device`, drives
  // are read through what it opens, once for each drive, also for those that
  // are added later; otherwise as the options say.
  // Errors: FailedPrecondition  the engine asked for does not work here; the
  //                             message says why.
  //         InvalidArgument     an option is out of range, or there is no such
  //                             drive model.
  //         ResourceExhausted   the system gives no more threads.
  //         Those of `open_device`.
  static absl::StatusOr<std::unique_ptr<BlockStore>> Create(
      const BlockStoreOptions& options);
  static absl::StatusOr<std::unique_ptr<BlockStore>> Create(
      const BlockStoreOptions& options, DeviceFactory open_device);

  // Ends all fetches (with Cancelled where they were still queued), runs all
  // tasks of the decode pool, then joins the threads. Blocks that were handed
  // out stay valid.
  // REQUIRES: no other call runs, and this is not called by a `done`.
  ~BlockStore();
  BlockStore(const BlockStore&) = delete;
  BlockStore& operator=(const BlockStore&) = delete;

  // The block if it is in the cache, else null. Counts as a hit or as nothing:
  // the Fetch() that follows counts the miss. Never blocks on I/O. Unless it is
  // for a scan, marks the block as in demand.
  BlockPtr Lookup(const BlockKey& key,
                  FetchClass fetch_class = FetchClass::kInteractive);

  // Whether the block is in the cache; a look, not a use. Never blocks on I/O.
  bool IsCached(const BlockKey& key) const { return cache_.Contains(key); }

  // Gives the cache another capacity than cache_size_bytes of the options;
  // evicts what exceeds it. No two calls may overlap.
  void ResizeCache(uint64_t size_bytes) { cache_.Resize(size_bytes); }

  // What a read takes at the drive that files of this placement are read from
  // (null as in BlockFetch), by the last reads there; 0 before the first.
  std::chrono::nanoseconds TimePerRead(const FilePlacement* placement) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Gets a block: from the cache, too, but a caller who expects it there calls
  // Lookup() first, which does not take the store's mutex. `done` is called
  // exactly once, on a thread of the decode pool or, where the block is cached
  // or the fetch is refused, on this one before Fetch() returns. It must not
  // block. No lock is held while it runs.
  // Fetches of one block, or of parts of it, that overlap in time share one
  // read and one decoding. (A part that is asked for when others of its block
  // are about to be decoded is read by itself.)
  // A block that the device fails to read, or that does not decode, is read
  // once more, from the drive where the system lets us, before `done` is
  // called.
  // Returns the fetch's id, or 0 if `done` has run already.
  // Errors, through `done`: DataLoss (from the decoder, or the file ends
  // early), Unavailable (device error), ResourceExhausted (queue full, or no
  // memory), Cancelled, InvalidArgument (empty extent or no decoder).
  FetchId Fetch(BlockFetch fetch, Done done) ABSL_LOCKS_EXCLUDED(mutex_);

  // Fetch() for each, in one step: neighbours that are asked for together are
  // read together even where the device idles. Returns the ids in their order.
  struct FetchItem {
    BlockFetch fetch;
    Done done;
  };

  std::vector<FetchId> FetchAll(std::vector<FetchItem> items)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Withdraws a fetch: if its read has not started, `done` gets Cancelled (on
  // this thread, before Cancel() returns) and no I/O takes place on its behalf.
  // Otherwise, or if it has ended, nothing happens.
  void Cancel(FetchId id) ABSL_LOCKS_EXCLUDED(mutex_);

  // The threads that decode, for work on blocks that is too long for the
  // caller's thread; and the memory that blocks have, for what is made of them,
  // which is outside of all bounds of the options. They live as long as the
  // store, buffers longer.
  DecodePool& decode_pool() { return *decode_pool_; }

  BufferPool& buffers() { return *buffers_; }

  // Gives a drive a queue and an engine unless it has them: for files that are
  // opened later. Opening takes some system calls.
  // Errors: as Create().
  absl::Status AddDrive(const DriveInfo& drive) ABSL_LOCKS_EXCLUDED(mutex_);

  // Of the first drive: "io_uring", "pread", or "model:" and the drive's name.
  std::string engine_name() const ABSL_LOCKS_EXCLUDED(mutex_);

  // In the order in which they were added. For the log.
  std::vector<DriveDescription> Drives() const ABSL_LOCKS_EXCLUDED(mutex_);

  BlockStoreStats Stats() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  BlockStore(const BlockStoreOptions& options, DeviceFactory open_device);

  // FetchAll() for so many that the lock is not held long.
  static constexpr size_t kFetchesPerStep = 256;
  void FetchSome(std::span<FetchItem> items, std::vector<FetchId>& ids)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Begins a fetch, which takes `done`. Nothing, with `done` left and `result`
  // set, if it has ended at once. A block that is not in flight yet joins the
  // run, which is enqueued first if it cannot; the caller enqueues what is left
  // of the run.
  std::optional<FetchId> Begin(SchedulerTime now, BlockFetch& fetch, Done& done,
                               absl::StatusOr<BlockPtr>& result, BlockRun& run)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // One more fetch for a block that is in flight.
  FetchId Join(SchedulerTime now, InFlightBlock& block, const BlockFetch& fetch,
               Done& done) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Enqueue(SchedulerTime now, BlockRun& run)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void CountDecoded(const BlockFetch& fetch, const BlockOutcome& outcome)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // What the devices are to read now; the caller passes it to StartPlanned()
  // without the lock.
  DriveReads Plan(SchedulerTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StartPlanned(const DriveReads& reads) ABSL_LOCKS_EXCLUDED(mutex_);

  void OnDeviceResults(DriveQueue& queue, std::span<DeviceResult> results)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Appends the tasks that finish the blocks, which are moved from.
  void AddDecodeTasks(const DriveReadPtr& read, std::span<ReadBlock> blocks,
                      std::vector<DecodePool::Task>& tasks);
  void RunDecodeTask(DriveRead& read, std::span<const ReadBlock> blocks)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // For so long results may wait for each other: half of the time for which the
  // decoders have enough to do.
  std::chrono::microseconds DevicePatience() const;

  const BlockStoreOptions options_;
  const DeviceFactory open_device_;
  const std::shared_ptr<BufferPool> buffers_;
  BlockCache cache_;

  mutable Mutex mutex_;
  // Signalled, while the store is being destroyed, when a drive's last read or
  // a StartPlanned() ends.
  CondVar reads_ended_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // Plan()s whose StartPlanned() has not ended.
  size_t unstarted_plans_ ABSL_GUARDED_BY(mutex_) = 0;
  ReadMemory memory_ ABSL_GUARDED_BY(mutex_);
  InFlightTable in_flight_ ABSL_GUARDED_BY(mutex_);
  // Never empty, and no drive is ever removed, once there is a store.
  DriveSet drives_ ABSL_GUARDED_BY(mutex_);
  // What the cache, the table and the drives do not count.
  BlockStoreStats stats_ ABSL_GUARDED_BY(mutex_);

  // Last: its threads use all of the above until they are joined.
  std::unique_ptr<DecodePool> decode_pool_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_BLOCK_STORE_H_
