// SPDX-License-Identifier: GPL-3.0-or-later
//
// The queue of one drive: the blocks to be read from it, and the reads at its
// device.
#ifndef QUIRE_SERVER_STORAGE_FETCH_DRIVE_QUEUE_H_
#define QUIRE_SERVER_STORAGE_FETCH_DRIVE_QUEUE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"

#include "server/storage/base/moving_average.h"
#include "server/storage/device/device.h"
#include "server/storage/device/drive_kind.h"
#include "server/storage/fetch/block_run.h"
#include "server/storage/fetch/drive_description.h"
#include "server/storage/fetch/drive_read.h"
#include "server/storage/fetch/in_flight_table.h"
#include "server/storage/fetch/read_memory.h"
#include "server/storage/scheduler/scheduler.h"

namespace quire {

// A scheduler, its requests (runs of blocks), and the device with the
// dispatched reads. A block is enqueued, then either dequeued or dispatched in
// one read. It ends when TakeResult() returns it.
//
// Guarded by BlockStore's mutex, except where stated. No function calls the
// device or blocks while that is held; Submit() is called without it. The clock
// is passed in.
class DriveQueue {
 public:
  struct Options {
    DriveInfo drive;
    // Reads at the device.
    uint32_t depth = 32;
    // Blocks in the queue.
    uint32_t pending_max = 1 << 17;
  };

  // Receives the device's results, on a thread of the device, without a lock.
  using OnResults = std::function<void(DriveQueue&, std::span<DeviceResult>)>;

  // Opens the device. `in_flight` and `memory` must outlive the queue.
  // Errors: those of `open_device`.
  static absl::StatusOr<std::unique_ptr<DriveQueue>> Open(
      const Options& options, const DeviceFactory& open_device,
      OnResults on_results, InFlightTable& in_flight, ReadMemory& memory);
  DriveQueue(const DriveQueue&) = delete;
  DriveQueue& operator=(const DriveQueue&) = delete;

  // Called without the lock, once, before the first read.
  void SetPatience(Device::Patience patience);

  // Called without the lock.
  void Submit(std::span<const DeviceRead> operations);

  // Tells the device that a block was read and is damaged; it is read again.
  void Invalidate(const BlockFetch& fetch);

  // Waits for the reads at the device and joins its threads. Called without the
  // lock; no Submit() runs or follows.
  void CloseDevice();

  // Hands a run to the scheduler as one request, and empties it. No effect if
  // it is empty.
  // REQUIRES: all its blocks are in the table, not at a device and in no queue.
  void Enqueue(SchedulerTime now, BlockRun& run);

  // Takes a block out of the queue; the rest of its run stays.
  // REQUIRES: the block waits in this queue.
  void Dequeue(SchedulerTime now, InFlightBlock& block);

  // Moves a block to a class that is served earlier.
  // REQUIRES: the block waits in this queue.
  void Promote(SchedulerTime now, InFlightBlock& block, FetchClass fetch_class);

  // Takes all blocks out of the queue.
  void DequeueAll();

  // Dispatches at most `reads_max` reads: appends them to `reads`, reserves
  // their memory and marks their blocks as at the device. The caller starts
  // them with StartReads(). Returns false if a request waits only for memory.
  bool Plan(SchedulerTime now, size_t reads_max, DriveReads& reads);

  // A read, and the blocks in it that have ended.
  struct Ended {
    DriveReadPtr read;
    std::vector<ReadBlock> blocks;
  };

  // Processes a result of the device. If blocks of its read remain, appends the
  // next operation to submit to `repeats`.
  Ended TakeResult(SchedulerTime now, const DeviceResult& result,
                   std::vector<DeviceRead>& repeats);

  bool has_pending() const { return scheduler_->pending_requests() > 0; }

  // True if reads are at the device.
  bool has_reads() const { return !reads_.empty(); }

  // May be called without the lock.
  const std::string& name() const { return options_.drive.name; }

  // May be called without the lock, before CloseDevice().
  std::string engine_name() const { return device_->name(); }

  // Returns the drive's time per read: with many in flight, the time from one
  // result to the next. A moving average; 0 before the first result.
  std::chrono::nanoseconds TimePerRead() const { return time_per_read_.mean(); }

  DriveDescription Describe() const;
  DriveStats Stats() const;

 private:
  DriveQueue(const Options& options, InFlightTable& in_flight,
             ReadMemory& memory);

  DriveReadPtr Dispatch(SchedulerTime now, const ScheduledRead& read);

  struct ReadAtDevice {
    DriveReadPtr read;
    // Start of the operation at the device.
    SchedulerTime started;
  };

  const Options options_;
  InFlightTable& in_flight_;
  ReadMemory& memory_;
  bool uses_priorities_ = false;
  std::string note_;
  std::unique_ptr<Scheduler> scheduler_;
  uint64_t next_request_id_ = 1;
  // The scheduler's waiting requests, and its incomplete reads.
  absl::flat_hash_map<uint64_t, BlockRun> runs_;
  absl::flat_hash_map<uint64_t, ReadAtDevice> reads_;
  // Without its levels.
  DriveStats stats_;
  MovingAverage time_per_read_;
  SchedulerTime last_result_ = {};
  // Last: its threads call back until it is closed.
  std::unique_ptr<Device> device_;
};

// Allocates buffers for reads and hands them to their devices.
// Thread-safe, without a lock.
void StartReads(const DriveReads& reads, BufferPool& buffers);

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_FETCH_DRIVE_QUEUE_H_
