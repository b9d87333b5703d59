// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/fetch/drive_read.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace quire {
namespace {

absl::Status WithExtent(const absl::Status& status, const BlockFetch& fetch) {
  return absl::Status(status.code(),
                      absl::StrCat("segment ", fetch.key.block.segment_index,
                                   ", byte ", fetch.extent.offset.value, ": ",
                                   std::string(status.message())));
}

// Returns the parts that fetches wait for, ascending.
absl::InlinedVector<uint32_t, 1> PartsOf(const InFlightBlock& block) {
  absl::InlinedVector<uint32_t, 1> parts;
  if (block.all_parts) {
    parts.resize(PartCount(block.fetch));
    std::iota(parts.begin(), parts.end(), 0);
    return parts;
  }
  for (const InFlightBlock::Waiter& waiter : block.waiters) {
    parts.push_back(waiter.part);
  }
  std::sort(parts.begin(), parts.end());
  parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
  return parts;
}

}  // namespace

DriveRead::DriveRead(DriveQueue& queue, const ScheduledRead& read,
                     std::vector<InFlightBlock*> blocks,
                     const ReadMemory& memory)
    : queue_(queue),
      id_(read.id),
      urgent_(read.urgent),
      buffer_memory_size_bytes_(memory.buffer_size()(read.size_bytes)),
      blocks_(std::move(blocks)),
      address_(read.address),
      size_bytes_(read.size_bytes),
      operation_end_(blocks_.size()),
      unreleased_count_(blocks_.size()) {
  const Extent& extent = blocks_.front()->fetch.extent;
  if (!memory.direct_io() || extent.direct_fd < 0) {
    return;
  }
  const uint64_t mask = extent.direct_alignment_bytes - 1;
  const uint64_t start = address_.offset.value;
  const uint64_t end = (start + size_bytes_ + mask) & ~mask;
  direct_fd_ = extent.direct_fd;
  address_.offset.value = start & ~mask;
  size_bytes_ = static_cast<uint32_t>(end - address_.offset.value);
}

void DriveRead::AllocateBuffer(BufferPool& buffers) {
  buffer_ = buffers.Allocate(size_bytes_);
}

DeviceRead DriveRead::FirstOperation() {
  return {.id = id_,
          .fd = direct_fd_ >= 0 ? direct_fd_ : address_.fd,
          .offset = address_.offset,
          .urgent = urgent_,
          .buffer = buffer_.bytes()};
}

uint64_t DriveRead::NeededSizeBytes() const {
  const BlockFetch& last = blocks_[operation_end_ - 1]->fetch;
  return StartOf(last) + last.extent.size_bytes - operation_start_;
}

bool DriveRead::TakeResult(const DeviceResult& result, InFlightTable& in_flight,
                           std::vector<ReadBlock>& ended) {
  // The first operation covers the whole read, later ones a block each.
  const bool is_joint = operation_end_ - ended_count_ > 1 || direct_fd_ >= 0;
  for (; ended_count_ < operation_end_; ++ended_count_) {
    InFlightBlock* block = blocks_[ended_count_];
    const BlockFetch& fetch = block->fetch;
    absl::Status status;
    if (StartOf(fetch) - operation_start_ + fetch.extent.size_bytes >
        result.size_bytes) {
      // Not directly again: pages shared with neighbours are being decoded.
      if (absl::IsUnavailable(result.status) && !result.is_final &&
          (is_joint || !block->repeated)) {
        in_flight.MarkRepeated(*block);
        direct_fd_ = -1;
        operation_end_ = ended_count_ + 1;
        return false;
      }
      status = WithExtent(result.status, fetch);
    }
    ended.push_back({.block = block,
                     .status = std::move(status),
                     .parts = PartsOf(*block),
                     .is_cached = fetch.fetch_class != FetchClass::kScrub,
                     .use = BlockCache::UseOf(fetch.fetch_class)});
  }
  if (ended_count_ < blocks_.size()) {
    operation_end_ = ended_count_ + 1;
    return false;
  }
  return true;
}

DeviceRead DriveRead::NextOperation() {
  const BlockFetch& fetch = blocks_[ended_count_]->fetch;
  operation_start_ = StartOf(fetch);
  return {.id = id_,
          .fd = address_.fd,
          .offset = fetch.extent.offset,
          .buffer = buffer_.bytes().subspan(operation_start_,
                                            fetch.extent.size_bytes)};
}

ByteView DriveRead::StoredBytes(const BlockFetch& fetch) const {
  return buffer_.bytes().subspan(StartOf(fetch), fetch.extent.size_bytes);
}

uint64_t DriveRead::ReleaseBlocks(size_t count) {
  if (unreleased_count_.fetch_sub(count, std::memory_order_acq_rel) != count) {
    return 0;
  }
  buffer_ = Buffer();
  return buffer_memory_size_bytes_;
}

}  // namespace quire
