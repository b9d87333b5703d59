// SPDX-License-Identifier: GPL-3.0-or-later
//
// One read of a drive on behalf of one block or several.
#ifndef QUIRE_SERVER_STORAGE_FETCH_DRIVE_READ_H_
#define QUIRE_SERVER_STORAGE_FETCH_DRIVE_READ_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"

#include "codecs/base/bytes.h"
#include "server/storage/cache/block_cache.h"
#include "server/storage/device/device.h"
#include "server/storage/fetch/buffer_pool.h"
#include "server/storage/fetch/in_flight_table.h"
#include "server/storage/fetch/read_memory.h"
#include "server/storage/scheduler/scheduler.h"

namespace quire {

// A block whose read has ended, and what the decode task is to do with it.
struct ReadBlock {
  InFlightBlock* block = nullptr;
  // The device's.
  absl::Status status;
  // Parts to decode, ascending.
  absl::InlinedVector<uint32_t, 1> parts = {};
  BlockCache::Use use = BlockCache::Use::kDemand;
};

// A read from its dispatch until its last block is decoded. Its first operation
// covers all blocks, with O_DIRECT where the options and the file allow it. If
// that fails within a block, the rest is read block by block through the page
// cache: the error may be a neighbour's, or gone the next time.
//
// Guarded by BlockStore's mutex, except where stated. The blocks stay in the
// table until the decode task of each has ended it.
class DriveRead {
 public:
  // REQUIRES: `blocks` is not empty and by ascending offset; all of them lie in
  // `read`.
  DriveRead(DriveQueue& queue, const ScheduledRead& read,
            std::vector<InFlightBlock*> blocks, const ReadMemory& memory);
  DriveRead(const DriveRead&) = delete;
  DriveRead& operator=(const DriveRead&) = delete;

  // May be called without the lock.
  DriveQueue& queue() const { return queue_; }

  uint64_t id() const { return id_; }

  uint32_t buffer_size_bytes() const { return size_bytes_; }

  // Without the lock, by the thread that starts the read, before it does.
  void AllocateBuffer(BufferPool& buffers);

  // The operation that covers all blocks. Without the lock, after
  // AllocateBuffer().
  DeviceRead FirstOperation();

  // Of the operation at the device, how many bytes its blocks need.
  uint64_t NeededSizeBytes() const;

  // Takes in the result of the operation at the device, and appends the blocks
  // whose read has ended with it. False if other blocks are left:
  // NextOperation() is to go to the device.
  bool TakeResult(const DeviceResult& result, InFlightTable& in_flight,
                  std::vector<ReadBlock>& ended);

  // The operation for the first block that is left, alone.
  // REQUIRES: TakeResult() returned false.
  DeviceRead NextOperation();

  // The stored bytes of a block whose read ended well. Without the lock, before
  // ReleaseBlocks() for that block.
  ByteView StoredBytes(const BlockFetch& fetch) const;

  // So many more blocks no longer need the buffer. If they were the last ones
  // the buffer is freed, and what was reserved for it returned; otherwise 0.
  // Thread-safe, without the lock.
  uint64_t ReleaseBlocks(size_t count);

 private:
  uint64_t StartOf(const BlockFetch& fetch) const {
    return fetch.extent.offset.value - address_.offset.value;
  }

  DriveQueue& queue_;
  const uint64_t id_;
  const bool urgent_;
  const uint64_t buffer_memory_size_bytes_;
  const std::vector<InFlightBlock*> blocks_;
  // Where the buffer begins, and its size: more than the scheduler said if they
  // were widened for O_DIRECT.
  DeviceAddress address_;
  uint32_t size_bytes_;
  // The next operation is direct, unless this is -1.
  int direct_fd_ = -1;
  // blocks_[ended_count_, operation_end_) are in the operation at the device,
  // which begins at operation_start_ of the buffer.
  uint64_t operation_start_ = 0;
  size_t ended_count_ = 0;
  size_t operation_end_;
  Buffer buffer_;
  // Blocks that still need the buffer.
  std::atomic<size_t> unreleased_count_;
};

using DriveReadPtr = std::shared_ptr<DriveRead>;
using DriveReads = absl::InlinedVector<DriveReadPtr, 1>;

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_FETCH_DRIVE_READ_H_
