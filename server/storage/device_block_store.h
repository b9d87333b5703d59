// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_STORAGE_DEVICE_BLOCK_STORE_H_
#define QUIRE_SERVER_STORAGE_DEVICE_BLOCK_STORE_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/mutex.h"
#include "server/storage/block_cache.h"
#include "server/storage/block_store.h"
#include "server/storage/buffer_pool.h"
#include "server/storage/decode_pool.h"
#include "server/storage/device.h"
#include "server/storage/scheduler.h"

namespace quire {

// What widening a read for O_DIRECT adds to it at most.
inline constexpr uint32_t kDirectMarginBytes = 2 * 4096;

// The block store over any device. The way of a block that is not cached:
//
//   Fetch()         a Flight, joined by later fetches of the block; the
//                   scheduler of its drive queues its request, one for each run
//                   of neighbours that are asked for together
//   Plan()          the drives' schedulers, in turn, join requests into a
//                   Reading, whose memory is reserved; Start() hands it to the
//                   device
//   OnReadsDone()   device thread: cuts the Reading into blocks; plans again
//   Finish()        decode pool: decodes, caches, ends the Flight, or queues it
//                   once more if its bytes are damaged; plans again
//
// One mutex guards the bookkeeping of the miss path; the cached path takes only
// its shard's. Neither is held across I/O, decoding, callbacks or the
// destruction of anything of the caller's.
// Thread-safe.
class DeviceBlockStore final : public BlockStore {
 public:
  // `open_device` is called for each drive, also those that are added later.
  // Errors: those of `open_device`; InvalidArgument  an option is out of range.
  static absl::StatusOr<std::unique_ptr<BlockStore>> Create(
      const BlockStoreOptions& options, DeviceFactory open_device);
  ~DeviceBlockStore() override;

  BlockPtr Lookup(const BlockKey& key) override;
  FetchId Fetch(BlockFetch fetch, Done done) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<FetchId> FetchAll(std::vector<FetchItem> items) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Cancel(FetchId id) override ABSL_LOCKS_EXCLUDED(mutex_);

  Buffer Allocate(size_t size_bytes) override {
    return buffers_->Allocate(size_bytes);
  }

  void Run(std::function<void()> task) override;

  absl::Status AddDrive(const DriveInfo& info) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::string engine_name() const override ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<DriveDescription> Drives() const override
      ABSL_LOCKS_EXCLUDED(mutex_);

  BlockStoreStats Stats() const override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Waiter {
    FetchId id = 0;
    bool takes_packed = false;
    Done done;
  };

  struct Flight;

  // A block that was read, and what is to be made of it. `status` is the
  // device's.
  struct ReadBlock {
    Flight* flight = nullptr;
    absl::Status status;
    bool pack = false;
    BlockCache::Use use = BlockCache::Use::kDemand;
  };

  // What a reading made of a block.
  struct Outcome {
    absl::StatusOr<BlockPtr> text;
    // Null if there is no such form.
    BlockPtr packed;
    // The bytes were not as they should be, though the device saw no error.
    bool is_damaged = false;
    // Null while it is read again.
    std::unique_ptr<Flight> ended;
  };

  struct Reading;
  using ReadingPtr = std::shared_ptr<Reading>;
  using Readings = absl::InlinedVector<ReadingPtr, 1>;

  // A queue and who serves it. Guarded by mutex_ but for what does not change.
  struct Drive {
    DriveInfo info;
    bool uses_priorities = false;
    std::string note;
    std::unique_ptr<Device> device;
    std::unique_ptr<Scheduler> scheduler;
    absl::flat_hash_map<uint64_t, ReadingPtr> readings;
    // Without its levels.
    DriveStats stats;
  };

  // Blocks that the scheduler has as one request: the queue's work is done once
  // for all of them. They follow each other in one file, were asked for by one
  // caller in one step, and are of one class. Whatever concerns one of them
  // alone splits the run.
  using BlockRun = absl::InlinedVector<Flight*, 2>;

  // A block on its way. `fetch` is that of the first to ask and does not change
  // except for its class; that and the rest are guarded by mutex_.
  struct Flight {
    BlockFetch fetch;
    Drive* drive = nullptr;
    // Of its run, in queued_ until it is read.
    uint64_t request_id = 0;
    bool reading = false;
    // Its first read failed or gave damaged bytes; it is not read a
    // third time unless that second read was joint and failed.
    bool repeated = false;
    absl::InlinedVector<Waiter, 1> waiters;
  };

  // A read at the device, until its last block is decoded.
  struct Reading {
    Drive* drive = nullptr;
    uint64_t id = 0;
    // Where the buffer begins, and its size: more than the scheduler said if
    // they are widened for direct I/O.
    DeviceAddress address;
    uint32_t size_bytes = 0;
    bool urgent = false;
    uint64_t buffer_memory_size_bytes = 0;
    Buffer buffer;
    std::vector<Flight*> flights;
    // The next operation is direct, if there is a descriptor for that.
    int direct_fd = -1;
    // Flights [done_count, operation_end) are in the operation at the device,
    // which begins at this byte of the buffer; guarded by mutex_.
    uint64_t operation_start = 0;
    size_t done_count = 0;
    size_t operation_end = 0;
    // Flights that still need the buffer.
    std::atomic<size_t> flights_left = 0;
  };

  DeviceBlockStore(const BlockStoreOptions& options, DeviceFactory open_device);

  static SchedulerTime Now() {
    return std::chrono::steady_clock::now().time_since_epoch();
  }

  // FetchAll() for so many that the lock is not held long.
  static constexpr size_t kFetchesPerStep = 256;
  void FetchSome(std::span<FetchItem> items, std::vector<FetchId>& ids)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Begins or joins a flight, which takes `done`. Nothing, with `done` left and
  // `result` set, if the fetch has ended at once. A flight that begins joins
  // the run, which is queued first if it cannot; the caller queues what is left
  // of it.
  std::optional<FetchId> Begin(BlockFetch& fetch, Done& done,
                               absl::StatusOr<BlockPtr>& result, BlockRun& run)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Join(Flight& flight, FetchId id, const BlockFetch& fetch, Done& done)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Null if there is none of that name.
  Drive* FindDrive(const std::string& name) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The run as its drive's scheduler is to have it.
  ScheduledRequest RequestFor(const BlockRun& run, Drive*& drive) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether one more block may be read with them.
  bool MayJoin(const BlockRun& run, const BlockFetch& fetch) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Hands the run to its drive's scheduler and empties it; nothing if it is
  // empty.
  void Queue(BlockRun& run) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes a flight that is not yet read out of its run and of the scheduler.
  void Unqueue(Flight& flight) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives a flight that is not yet read a class that is served earlier.
  void Promote(Flight& flight, FetchClass fetch_class)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Half of the time for which the decoders have enough to do: so long results
  // may wait for each other.
  std::chrono::microseconds DevicePatience() const;

  // What the devices are to read now; the caller passes it to Start() after the
  // lock is gone.
  Readings Plan() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // At most `reads_max` of one drive. False if it must wait for memory.
  bool PlanDrive(Drive& drive, size_t reads_max, Readings& readings)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  ReadingPtr MakeReading(Drive& drive, const ScheduledRead& read)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Start(const Readings& readings) ABSL_LOCKS_EXCLUDED(mutex_);

  void OnReadsDone(Drive& drive, std::span<DeviceResult> results)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Turns what a device operation gave into tasks. Returns false if the rest of
  // the reading goes to the device again, block by block.
  bool TakeResult(const ReadingPtr& reading, const DeviceResult& result,
                  std::vector<DecodePool::Task>& tasks)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Appends the tasks that finish the blocks, which are moved from.
  void AddTasks(const ReadingPtr& reading, std::span<ReadBlock> blocks,
                std::vector<DecodePool::Task>& tasks);

  // Makes all of the reading one direct operation, if its extents have a
  // descriptor for that.
  void Widen(Reading& reading) const;
  // Counts the flight's second read, which the caller starts.
  void MarkRepeated(Flight& flight) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // An operation for the first block that is not done, through its fd.
  static DeviceRead RepeatOf(Reading& reading);
  // So that what was damaged on its way there is read from the drive again.
  static void DropFromPageCache(const Extent& extent);
  // Queues a flight anew whose block did not decode, for a reading of its own:
  // a bit may have flipped on the way. False if it is to end.
  bool ReadAgain(Flight& flight) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static absl::Status NoMemory(uint64_t size_bytes);
  // Where in the reading's buffer the block begins.
  static uint64_t StartOf(const BlockFetch& fetch,
                          const DeviceAddress& reading);
  // Of the operation, how much the flights in it need.
  static uint64_t NeededSizeBytes(const Reading& reading);
  // Memory that a block takes from its decoding until it is handed out.
  static uint64_t WorkSizeBytes(const BlockFetch& fetch);
  absl::StatusOr<BlockPtr> Decode(const Reading& reading,
                                  const BlockFetch& fetch);
  // Null if there is no smaller form.
  BlockPtr Pack(const BlockFetch& fetch, ByteView text);
  // Decodes and ends flights of the reading, or sends them to be read again.
  void Finish(Reading& reading, std::span<const ReadBlock> blocks)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Decodes into the cache. The memory that this made free is added to
  // `freed_size_bytes`.
  Outcome Make(const Reading& reading, const ReadBlock& block,
               uint64_t& freed_size_bytes);
  // Tells those who waited for a flight that has ended.
  static void Answer(const Outcome& outcome);
  // Takes the flight out of the books.
  std::unique_ptr<Flight> End(const Flight& flight, const absl::Status& status,
                              const absl::StatusOr<BlockPtr>& result)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const BlockStoreOptions options_;
  // Of buffers_size_bytes_max, what reads may reserve; the rest may idle in the
  // pool.
  const uint64_t reservable_size_bytes_;
  // The memory that a read of so many bytes takes for its buffer.
  uint64_t (*const read_memory_size_bytes_)(uint64_t);
  const std::shared_ptr<BufferPool> buffers_;
  const DeviceFactory open_device_;
  BlockCache cache_;

  mutable Mutex mutex_;
  CondVar readings_ended_;
  // Start()s that somebody owes or is in; begun under mutex_.
  std::atomic<size_t> starts_ = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  FetchId next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  // Never empty, and none ever goes, once there is a store.
  std::vector<std::unique_ptr<Drive>> drives_ ABSL_GUARDED_BY(mutex_);
  // Index of the drive whose turn it is to read.
  size_t turn_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<BlockKey, std::unique_ptr<Flight>> flights_
      ABSL_GUARDED_BY(mutex_);
  // All fetches that have not ended, and the runs that still queue by their
  // request.
  absl::flat_hash_map<FetchId, Flight*> fetches_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<uint64_t, BlockRun> queued_ ABSL_GUARDED_BY(mutex_);
  uint64_t reserved_size_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // The cache and the drives count the rest.
  BlockStoreStats stats_ ABSL_GUARDED_BY(mutex_);

  std::unique_ptr<DecodePool> decode_pool_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_DEVICE_BLOCK_STORE_H_
