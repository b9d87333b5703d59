// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/fetch/decode_task.h"

#include <fcntl.h>

#include <algorithm>
#include <utility>

#include "absl/status/status.h"

#include "codecs/base/status_macros.h"

namespace quire {
namespace {

class PooledBlock final : public DecodedBlock {
 public:
  explicit PooledBlock(Buffer buffer) : buffer_(std::move(buffer)) {}

  ByteView bytes() const override { return buffer_.bytes(); }

 private:
  const Buffer buffer_;
};

void DropFromPageCache(const Extent& extent) {
  // The kernel keeps pages that are only partly in the range.
  constexpr uint64_t kPageMask = 4096 - 1;
  const uint64_t start = extent.offset.value & ~kPageMask;
  const uint64_t end =
      (extent.offset.value + extent.size_bytes + kPageMask) & ~kPageMask;
  // Advice only: if the kernel ignores it, the second read returns the same
  // bytes.
  posix_fadvise(extent.fd, static_cast<off_t>(start),
                static_cast<off_t>(end - start), POSIX_FADV_DONTNEED);
}

// A fetch that joined another has waited only for the remaining steps.
FetchTime TimeOf(const InFlightBlock& block,
                 const InFlightBlock::Waiter& waiter, SchedulerTime now) {
  const SchedulerTime dispatched = std::max(block.dispatched, waiter.begun);
  const SchedulerTime read_ended = std::max(block.read_ended, dispatched);
  return {.queue = dispatched - waiter.begun,
          .device = read_ended - dispatched,
          .decode = std::max(now, read_ended) - read_ended};
}

}  // namespace

DecodeTask::DecodeTask(DriveRead& read, std::span<const ReadBlock> blocks,
                       BufferPool& buffers, BlockCache& cache)
    : read_(read), blocks_(blocks), buffers_(buffers), cache_(cache) {}

void DecodeTask::Decode() {
  for (const ReadBlock& block : blocks_) {
    outcomes_.push_back(DecodeBlock(block));
    freed_size_bytes_ += WorkSizeBytes(block.block->fetch);
  }
  // Free the memory before it is counted as free.
  freed_size_bytes_ += read_.ReleaseBlocks(blocks_.size());
}

BlockOutcome DecodeTask::DecodeBlock(const ReadBlock& block) {
  const BlockFetch& fetch = block.block->fetch;
  BlockOutcome outcome{.status = block.status, .parts = {}, .ended = nullptr};
  for (const uint32_t part : block.parts) {
    outcome.parts.push_back({.index = part, .text = nullptr});
  }
  if (outcome.status.ok()) {
    outcome.status = MakeTexts(fetch, outcome);
  }
  if (outcome.status.ok() && block.is_cached) {
    for (const BlockOutcome::Part& part : outcome.parts) {
      BlockKey key = fetch.key;
      key.part = part.index;
      cache_.Insert(key, part.text,
                    BufferPool::MemorySizeBytes(part.text->bytes().size()),
                    block.use);
    }
  }
  outcome.is_damaged = block.status.ok() && absl::IsDataLoss(outcome.status);
  if (outcome.is_damaged) {
    DropFromPageCache(fetch.extent);
  }
  return outcome;
}

absl::Status DecodeTask::MakeTexts(const BlockFetch& fetch,
                                   BlockOutcome& outcome) {
  absl::InlinedVector<Buffer, 1> texts;
  absl::InlinedVector<BlockPart, 1> parts;
  for (const BlockOutcome::Part& part : outcome.parts) {
    const uint32_t offset = part.index * fetch.part_size_bytes;
    Buffer& text = texts.emplace_back(buffers_.Allocate(
        std::min(fetch.part_size_bytes, fetch.raw_size_bytes - offset)));
    parts.push_back({.offset_in_block = offset, .text = text.bytes()});
  }
  QUIRE_RETURN_IF_ERROR(
      fetch.decoder->Decode(fetch.key.block, read_.StoredBytes(fetch), parts));
  for (size_t i = 0; i < texts.size(); ++i) {
    outcome.parts[i].text = std::make_shared<PooledBlock>(std::move(texts[i]));
  }
  return absl::OkStatus();
}

void DecodeTask::Answer(SchedulerTime now) const {
  for (const BlockOutcome& outcome : outcomes_) {
    if (outcome.ended == nullptr) {
      continue;
    }
    const BlockFetch& fetch = outcome.ended->fetch;
    if (absl::IsDataLoss(outcome.status)) {
      fetch.decoder->NoteDamage(fetch.key.block, outcome.status);
    }
    for (const InFlightBlock::Waiter& waiter : outcome.ended->waiters) {
      if (waiter.times != nullptr) {
        waiter.times->Add(TimeOf(*outcome.ended, waiter, now));
      }
      const auto part =
          std::find_if(outcome.parts.begin(), outcome.parts.end(),
                       [&](const auto& p) { return p.index == waiter.part; });
      if (!outcome.status.ok()) {
        waiter.done(outcome.status);
      } else if (part == outcome.parts.end()) {
        // It would have been read again if the store were not shutting down.
        waiter.done(absl::CancelledError("the block store is shutting down"));
      } else {
        waiter.done(part->text);
      }
    }
  }
}

}  // namespace quire
