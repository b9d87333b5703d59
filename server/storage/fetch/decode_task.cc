// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/fetch/decode_task.h"

#include <fcntl.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/memory_guard.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

class PooledBlock final : public DecodedBlock {
 public:
  PooledBlock(Buffer buffer, bool is_packed)
      : buffer_(std::move(buffer)), is_packed_(is_packed) {}

  ByteView bytes() const override { return buffer_.bytes(); }

  bool is_packed() const override { return is_packed_; }

 private:
  const Buffer buffer_;
  const bool is_packed_;
};

void DropFromPageCache(const Extent& extent) {
  // The kernel keeps pages that are named in part.
  constexpr uint64_t kPageMask = 4096 - 1;
  const uint64_t start = extent.offset.value & ~kPageMask;
  const uint64_t end =
      (extent.offset.value + extent.size_bytes + kPageMask) & ~kPageMask;
  // Advice: where it is not taken the second read gives what the first gave.
  posix_fadvise(extent.fd, static_cast<off_t>(start),
                static_cast<off_t>(end - start), POSIX_FADV_DONTNEED);
}

}  // namespace

absl::Status NoBufferMemory(uint64_t size_bytes) {
  return absl::ResourceExhaustedError(
      absl::StrCat("no memory for a block buffer of ", size_bytes, " bytes"));
}

DecodeTask::DecodeTask(DriveRead& read, std::span<const ReadBlock> blocks,
                       BufferPool& buffers, BlockCache& cache)
    : read_(read), blocks_(blocks), buffers_(buffers), cache_(cache) {}

void DecodeTask::Decode() {
  for (const ReadBlock& block : blocks_) {
    outcomes_.push_back(DecodeBlock(block));
    freed_size_bytes_ += WorkSizeBytes(block.block->fetch);
  }
  // Memory is free before it is accounted for as free.
  freed_size_bytes_ += read_.ReleaseBlocks(blocks_.size());
}

BlockOutcome DecodeTask::DecodeBlock(const ReadBlock& block) {
  const BlockFetch& fetch = block.block->fetch;
  BlockOutcome outcome;
  outcome.text = block.status.ok() ? MakeText(fetch)
                                   : absl::StatusOr<BlockPtr>(block.status);
  if (outcome.text.ok()) {
    if (block.pack) {
      outcome.packed = Pack(fetch, (*outcome.text)->bytes());
    }
    const BlockPtr& kept =
        outcome.packed != nullptr ? outcome.packed : *outcome.text;
    cache_.Insert(fetch.key, kept,
                  BufferPool::MemorySizeBytes(kept->bytes().size()), block.use);
  }
  outcome.is_damaged =
      block.status.ok() && absl::IsDataLoss(outcome.text.status());
  if (outcome.is_damaged) {
    DropFromPageCache(fetch.extent);
  }
  return outcome;
}

absl::StatusOr<BlockPtr> DecodeTask::MakeText(const BlockFetch& fetch) {
  Buffer text = buffers_.Allocate(fetch.raw_size_bytes);
  if (!text) {
    return NoBufferMemory(fetch.raw_size_bytes);
  }
  QUIRE_RETURN_IF_ERROR(OrNoMemory("decode a block", [&] {
    return fetch.decoder->Decode(fetch.key.block, read_.StoredBytes(fetch),
                                 text.bytes());
  }));
  return std::make_shared<PooledBlock>(std::move(text), /*is_packed=*/false);
}

BlockPtr DecodeTask::Pack(const BlockFetch& fetch, ByteView text) {
  Buffer packed;
  // Without memory there is no smaller form.
  const absl::StatusOr<bool> is_smaller =
      OrNoMemory("pack a block", [&]() -> absl::StatusOr<bool> {
        return fetch.decoder->Pack(text, [this, &packed](size_t size_bytes) {
          packed = buffers_.Allocate(size_bytes);
          return packed.bytes();
        });
      });
  return is_smaller.ok() && *is_smaller
             ? std::make_shared<PooledBlock>(std::move(packed),
                                             /*is_packed=*/true)
             : nullptr;
}

void DecodeTask::Answer() const {
  for (const BlockOutcome& outcome : outcomes_) {
    if (outcome.ended == nullptr) {
      continue;
    }
    const BlockFetch& fetch = outcome.ended->fetch;
    if (outcome.is_damaged) {
      fetch.decoder->NoteDamage(fetch.key.block, outcome.text.status());
    }
    for (const InFlightBlock::Waiter& waiter : outcome.ended->waiters) {
      if (waiter.takes_packed && outcome.packed != nullptr) {
        waiter.done(outcome.packed);
      } else {
        waiter.done(outcome.text);
      }
    }
  }
}

}  // namespace quire
