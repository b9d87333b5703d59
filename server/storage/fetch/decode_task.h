// SPDX-License-Identifier: GPL-3.0-or-later
//
// From the bytes of a drive's read to the blocks that were asked for.
#ifndef QUIRE_SERVER_STORAGE_FETCH_DECODE_TASK_H_
#define QUIRE_SERVER_STORAGE_FETCH_DECODE_TASK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"

#include "server/storage/base/block_types.h"
#include "server/storage/cache/block_cache.h"
#include "server/storage/fetch/buffer_pool.h"
#include "server/storage/fetch/drive_read.h"
#include "server/storage/fetch/in_flight_table.h"

namespace quire {

// What became of one block.
struct BlockOutcome {
  struct Part {
    uint32_t index = 0;
    BlockPtr text;
  };

  // Why there is no text, if that is so.
  absl::Status status;
  // As ReadBlock::parts.
  absl::InlinedVector<Part, 1> parts;
  // The bytes were not as they should be, though the device saw no error: a
  // second read may be better.
  bool is_damaged = false;
  // The block, once the caller has taken it out of the table; null while it is
  // read again.
  std::unique_ptr<InFlightBlock> ended;
};

// Some blocks of one read, decoded by one thread. The caller calls Decode(),
// then settles all outcomes under its lock, then calls Answer(): one turn at
// the lock for several blocks, since one for each block of a scan costs several
// per cent of decoding it.
// Thread-compatible; called without a lock.
class DecodeTask {
 public:
  static constexpr size_t kBlocksMax = 4;

  // REQUIRES: blocks.size() <= kBlocksMax; all of them are blocks of `read`.
  // What is passed outlives the task.
  DecodeTask(DriveRead& read, std::span<const ReadBlock> blocks,
             BufferPool& buffers, BlockCache& cache);

  // Decodes the blocks and puts them into the cache, before they are taken out
  // of the table: a fetch that finds a block not in flight any more finds it
  // there. Drops damaged bytes from the page cache, so that a second read comes
  // from the drive.
  void Decode();

  // In the order of the blocks; after Decode().
  std::span<BlockOutcome> outcomes() {
    return {outcomes_.data(), outcomes_.size()};
  }

  // The memory that Decode() made free, to be released by the caller.
  uint64_t freed_size_bytes() const { return freed_size_bytes_; }

  // Tells the fetches of the blocks that have ended, at `now`.
  void Answer(SchedulerTime now) const;

 private:
  BlockOutcome DecodeBlock(const ReadBlock& block);
  // Makes the text of outcome.parts.
  absl::Status MakeTexts(const BlockFetch& fetch, BlockOutcome& outcome);

  DriveRead& read_;
  const std::span<const ReadBlock> blocks_;
  BufferPool& buffers_;
  BlockCache& cache_;
  absl::InlinedVector<BlockOutcome, kBlocksMax> outcomes_;
  uint64_t freed_size_bytes_ = 0;
};

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_FETCH_DECODE_TASK_H_
