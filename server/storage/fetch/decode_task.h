// SPDX-License-Identifier: GPL-3.0-or-later
//
// Decodes the bytes of a drive's read to the requested blocks.
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

// Result of decoding one block.
struct BlockOutcome {
  struct Part {
    uint32_t index = 0;
    BlockPtr text;
  };

  // The error if there is no text.
  absl::Status status;
  // See ReadBlock::parts.
  absl::InlinedVector<Part, 1> parts;
  // The bytes are damaged without a device error: a second read may be better.
  bool is_damaged = false;
  // The block, once the caller has removed it from the table; null while it is
  // read again.
  std::unique_ptr<InFlightBlock> ended;
};

// Some blocks of one read, decoded by one thread. The caller calls Decode(),
// settles all outcomes under its lock, then calls Answer(). Several blocks
// share one locking, as locking for each block of a scan costs several per cent
// of decoding it.
// Thread-compatible; called without a lock.
class DecodeTask {
 public:
  static constexpr size_t kBlocksMax = 4;

  // REQUIRES: blocks.size() <= kBlocksMax; all of them are blocks of `read`.
  // All arguments outlive the task.
  DecodeTask(DriveRead& read, std::span<const ReadBlock> blocks,
             BufferPool& buffers, BlockCache& cache);

  // Decodes the blocks and caches them, before they are removed from the table:
  // a fetch that no longer finds a block in flight finds it in the cache. Drops
  // damaged bytes from the page cache, so that a second read comes from the
  // drive.
  void Decode();

  // In the order of the blocks; valid after Decode().
  std::span<BlockOutcome> outcomes() {
    return {outcomes_.data(), outcomes_.size()};
  }

  // Memory that Decode() freed, to be released by the caller.
  uint64_t freed_size_bytes() const { return freed_size_bytes_; }

  // Answers the fetches of the ended blocks, at `now`.
  void Answer(SchedulerTime now) const;

 private:
  BlockOutcome DecodeBlock(const ReadBlock& block);
  // Decodes the texts of outcome.parts.
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
