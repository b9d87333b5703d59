// SPDX-License-Identifier: GPL-3.0-or-later
//
// One read of a drive for one or more blocks.
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

// A block whose read has ended, with the parts to decode.
struct ReadBlock {
  InFlightBlock* block = nullptr;
  // Status from the device.
  absl::Status status;
  // Parts to decode, ascending.
  absl::InlinedVector<uint32_t, 1> parts = {};
  // The cache keeps the parts, and as what. Set when the read ends: the fetch's
  // class may change later.
  bool is_cached = true;
  BlockCache::Use use = BlockCache::Use::kDemand;
};

// A read from its dispatch until its last block is decoded. Its first operation
// covers all blocks, with O_DIRECT if the options and the file allow it. If
// that fails within a block, the rest is read block by block through the page
// cache: the error may be a neighbour's, or transient.
//
// Guarded by BlockStore's mutex, except where stated. Each block stays in the
// table until its decode task has ended it.
class DriveRead {
 public:
  // REQUIRES: `blocks` is not empty and in order of offset; all of them lie in
  // `read`.
  DriveRead(DriveQueue& queue, const ScheduledRead& read,
            std::vector<InFlightBlock*> blocks, const ReadMemory& memory);
  DriveRead(const DriveRead&) = delete;
  DriveRead& operator=(const DriveRead&) = delete;

  // May be called without the lock.
  DriveQueue& queue() const { return queue_; }

  uint64_t id() const { return id_; }

  // Called without the lock by the thread that starts the read, before it does.
  void AllocateBuffer(BufferPool& buffers);

  // Returns the operation that covers all blocks. Called without the lock,
  // after AllocateBuffer().
  DeviceRead FirstOperation();

  // Returns the bytes that the blocks of the operation at the device need.
  uint64_t NeededSizeBytes() const;

  // Processes the result of the operation at the device, and appends the blocks
  // that have ended with it. Returns false if other blocks remain:
  // NextOperation() must go to the device.
  bool TakeResult(const DeviceResult& result, InFlightTable& in_flight,
                  std::vector<ReadBlock>& ended);

  // Returns the operation for the first remaining block, alone.
  // REQUIRES: TakeResult() returned false.
  DeviceRead NextOperation();

  // Returns the stored bytes of a successfully read block. Called without the
  // lock, before ReleaseBlocks() for that block.
  ByteView StoredBytes(const BlockFetch& fetch) const;

  // Records that `count` more blocks no longer need the buffer. After the last
  // one, frees the buffer and returns its reserved size; otherwise returns 0.
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
  // Address and size of the buffer: wider than the scheduler's read if it was
  // widened for O_DIRECT.
  DeviceAddress address_;
  uint32_t size_bytes_;
  // File descriptor of the next operation if it is direct; -1 if not.
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
