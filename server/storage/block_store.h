// SPDX-License-Identifier: GPL-3.0-or-later
//
// Decoded blocks, from the cache or from a device: the service's only interface
// to storage.
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
  // Affects memory. Limit of the cache: blocks, each rounded up to whole pages,
  // and their records. 0: no cache.
  uint64_t cache_size_bytes = uint64_t{256} << 20;
  // Limit of device reads and of decoded blocks neither cached nor handed out
  // yet. A block that needs more is still read, alone.
  uint64_t buffers_size_bytes_max = uint64_t{64} << 20;
  // Limit that the callers keep of buffers() and of evicted blocks that they
  // hold. The store keeps freed memory for its successors: with all live
  // memory, at most the sum of these three limits. Outside of them: about 400
  // bytes for each pending fetch.
  uint64_t callers_size_bytes_max = 0;
  // Limit on waiting fetches; above it Fetch() fails with ResourceExhausted.
  uint32_t pending_fetches_max = 1 << 17;

  // Affects performance.
  // 0: one per usable core (cgroup.h).
  uint32_t decode_threads = 0;
  using Engine = DeviceEngine;
  Engine engine = Engine::kAuto;
  // Reads in flight at each drive.
  uint32_t device_depth = 32;
  // Read extents that have a direct_fd through it, widened to its alignment. If
  // that fails, repeat the read through their fd.
  bool direct_io = false;
  // Drives to read from; each has its own queue and engine. Empty: one unknown
  // drive. A drive model replaces them.
  std::vector<DriveInfo> drives = {};
  // Delays reads as this drive would; empty: no delay. One of DrivePresets()
  // (model/drive_presets.h).
  std::string device_model = {};
};

// Monotonic counters and current levels, for metrics.
struct BlockStoreStats {
  // Each Lookup() that found its block and each Fetch(), except for scrubbing,
  // counts once.
  uint64_t cache_hits = 0;
  uint64_t cache_misses = 0;
  uint64_t cache_evictions = 0;
  uint64_t cache_size_bytes = 0;
  // Current capacity of the cache.
  uint64_t cache_capacity_bytes = 0;
  uint64_t cache_blocks = 0;
  // Fetches that joined one for the same block in flight.
  uint64_t joined_fetches = 0;
  uint64_t device_reads = 0;
  uint64_t device_read_bytes = 0;
  uint64_t device_errors = 0;
  // Each part of a block that is decoded in parts counts separately.
  uint64_t blocks_decoded = 0;
  // Blocks decoded whole, and blocks of which only some parts were.
  uint64_t whole_decodes = 0;
  uint64_t partial_decodes = 0;
  uint64_t decoded_bytes = 0;
  // Blocks answered with an error because of a checksum, a codec or a truncated
  // file.
  uint64_t decode_failures = 0;
  // Blocks read a second time, because of a device error or because their bytes
  // did not decode; and those whose second read succeeded.
  uint64_t repeated_blocks = 0;
  uint64_t recovered_blocks = 0;
  uint64_t cancelled_fetches = 0;
  // Levels: fetches not yet at the device, and reads at the device.
  uint64_t queued_fetches = 0;
  uint64_t device_reads_in_flight = 0;
  uint64_t buffers_size_bytes = 0;
  // See Drives().
  std::vector<DriveStats> drives = {};
};

// Path of a block that is not cached:
//
//   Fetch()            enters the block in the table of in-flight blocks, or
//                      joins it there (in_flight_table.h); the queue of its
//                      drive has one request for each run of neighbours
//                      fetched together (drive_queue.h)
//   Plan()             the drives, in turn, join requests into reads whose
//                      memory is reserved (drive_set.h, read_memory.h);
//                      StartPlanned() hands them to the devices
//   OnDeviceResults()  device thread: turns the blocks that were read into
//                      decode tasks; plans again
//   RunDecodeTask()    decode pool: decodes and caches (decode_task.h), removes
//                      the blocks from the table or enqueues a damaged one
//                      again, once; plans again; answers the fetches
//
// One mutex guards the table, the queues and the account of memory. Lookup()
// takes only the lock of the block's cache shard if it finds the block. No lock
// is held across I/O, decoding, callbacks or the destruction of callers'
// objects.
// Thread-safe.
class BlockStore {
 public:
  using BlockPtr = quire::BlockPtr;
  using Done = FetchDone;
  using FetchId = quire::FetchId;

  // Starts the device threads and the decode pool. With `open_device`, it opens
  // the device of each drive, also of those added later; otherwise the options
  // select the engine.
  // Errors: FailedPrecondition  the requested engine does not work here; states
  //                             the reason.
  //         InvalidArgument     an option is out of range, or the drive model
  //                             is unknown.
  //         ResourceExhausted   no more threads available.
  //         Those of `open_device`.
  static absl::StatusOr<std::unique_ptr<BlockStore>> Create(
      const BlockStoreOptions& options);
  static absl::StatusOr<std::unique_ptr<BlockStore>> Create(
      const BlockStoreOptions& options, DeviceFactory open_device);

  // Ends all fetches (with Cancelled if they were still queued), runs all tasks
  // of the decode pool, then joins the threads. Blocks that were handed out
  // stay valid.
  // REQUIRES: no other call runs, and no `done` calls this.
  ~BlockStore();
  BlockStore(const BlockStore&) = delete;
  BlockStore& operator=(const BlockStore&) = delete;

  // Returns the block if it is cached, else null. Counts hits only: the Fetch()
  // that follows counts the miss. Never blocks on I/O. Unless it is for a scan,
  // marks the block as in demand.
  BlockPtr Lookup(const BlockKey& key,
                  FetchClass fetch_class = FetchClass::kInteractive);

  // True if the block is cached; does not count as a use. Never blocks on I/O.
  bool IsCached(const BlockKey& key) const { return cache_.Contains(key); }

  // Sets the capacity of the cache, initially cache_size_bytes of the options,
  // evicts the excess and returns its memory to the system. No two calls may
  // overlap.
  void ResizeCache(uint64_t size_bytes);

  // Returns the recent average time of a read at the drive of this placement
  // (null as in BlockFetch); 0 before the first read.
  std::chrono::nanoseconds TimePerRead(const FilePlacement* placement) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Fetches a block, also from the cache. A caller that expects it there calls
  // Lookup() first, which does not take the store's mutex. `done` is called
  // exactly once: on a thread of the decode pool or, if the block is cached or
  // the fetch is refused, on this one before Fetch() returns. It must not
  // block. No lock is held while it runs.
  // Overlapping fetches of one block, or of its parts, share one read and one
  // decoding. (A part requested when others of its block are about to be
  // decoded is read separately.)
  // A block that the device fails to read, or that does not decode, is read
  // once more before `done` is called, from the drive if the system permits.
  // Returns the fetch's id, or 0 if `done` has run already.
  // Errors, through `done`: DataLoss (from the decoder, or the file is
  // truncated), Unavailable (device error), ResourceExhausted (queue full, or
  // no memory), Cancelled, InvalidArgument (empty extent or no decoder).
  FetchId Fetch(BlockFetch fetch, Done done) ABSL_LOCKS_EXCLUDED(mutex_);

  // Calls Fetch() for each, in one step: neighbours in the list are read
  // together even if the device is idle. Returns the ids in their order.
  struct FetchItem {
    BlockFetch fetch;
    Done done;
  };

  std::vector<FetchId> FetchAll(std::vector<FetchItem> items)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Withdraws a fetch. If its read has not started, `done` gets Cancelled (on
  // this thread, before Cancel() returns) and no I/O takes place for it. No
  // effect otherwise, or if it has ended.
  void Cancel(FetchId id) ABSL_LOCKS_EXCLUDED(mutex_);

  // The decode threads, for work on blocks that is too long for the caller's
  // thread; and memory of the same kind as blocks, for their encoded forms,
  // outside of all limits of the options. Both live as long as the store,
  // buffers longer.
  DecodePool& decode_pool() { return *decode_pool_; }

  BufferPool& buffers() { return *buffers_; }

  // Adds a queue and an engine for a drive unless it has them: for files that
  // are opened later. Makes some system calls.
  // Errors: as Create().
  absl::Status AddDrive(const DriveInfo& drive) ABSL_LOCKS_EXCLUDED(mutex_);

  // The same for a drive with a device and a depth of its own.
  absl::Status AddDrive(const DriveInfo& drive,
                        const DeviceFactory& open_device, uint32_t depth)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns "io_uring", "pread", or "model:NAME", of the first drive.
  std::string engine_name() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the drives in the order in which they were added, for the log.
  std::vector<DriveDescription> Drives() const ABSL_LOCKS_EXCLUDED(mutex_);

  BlockStoreStats Stats() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  BlockStore(const BlockStoreOptions& options, DeviceFactory open_device);

  // Fetches per step, which limits how long the lock is held.
  static constexpr size_t kFetchesPerStep = 256;
  void FetchSome(std::span<FetchItem> items, std::vector<FetchId>& ids)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Begins a fetch, which takes `done`. If it ends at once, returns nullopt,
  // leaves `done` and sets `result`. A block not yet in flight joins `run`,
  // which is enqueued first if the block cannot join; the caller enqueues the
  // remaining run.
  std::optional<FetchId> Begin(SchedulerTime now, BlockFetch& fetch, Done& done,
                               absl::StatusOr<BlockPtr>& result, BlockRun& run)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  FetchId Join(SchedulerTime now, InFlightBlock& block, const BlockFetch& fetch,
               Done& done) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Enqueue(SchedulerTime now, BlockRun& run)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void CountDecoded(const BlockFetch& fetch, const BlockOutcome& outcome)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Returns the reads to start now; the caller passes them to StartPlanned()
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

  // Returns how long results may wait for each other: half of the time until
  // the decoders run out of work, but not long if clients take turns.
  std::chrono::microseconds DevicePatience() const;

  const BlockStoreOptions options_;
  const DeviceFactory open_device_;
  const std::shared_ptr<BufferPool> buffers_;
  BlockCache cache_;

  mutable Mutex mutex_;
  // Signalled during destruction when a drive's last read or a StartPlanned()
  // ends.
  CondVar reads_ended_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // Number of Plan() calls whose StartPlanned() has not ended.
  size_t unstarted_plans_ ABSL_GUARDED_BY(mutex_) = 0;
  ReadMemory memory_ ABSL_GUARDED_BY(mutex_);
  InFlightTable in_flight_ ABSL_GUARDED_BY(mutex_);
  // Never empty, and no drive is ever removed, once the store exists.
  DriveSet drives_ ABSL_GUARDED_BY(mutex_);
  // Counters outside the cache, the table and the drives.
  BlockStoreStats stats_ ABSL_GUARDED_BY(mutex_);

  // Last: its threads use all of the above until they are joined.
  std::unique_ptr<DecodePool> decode_pool_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_BLOCK_STORE_H_
