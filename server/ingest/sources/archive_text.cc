// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/archive_text.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"

namespace quire {
namespace {

// Blocks at both ends of a part may be decoded twice.
constexpr uint64_t kPartSizeBytes = 512 << 10;

std::atomic<uint64_t> created_texts = 0;

}  // namespace

ArchiveText::ArchiveText(std::shared_ptr<const Archive> archive,
                         uint64_t offset)
    : archive_(std::move(archive)), next_offset_(offset) {}

absl::StatusOr<std::unique_ptr<ArchiveText>> ArchiveText::Create(
    std::shared_ptr<const Archive> archive, uint32_t threads, uint64_t offset) {
  std::unique_ptr<ArchiveText> text(
      new ArchiveText(std::move(archive), offset));
  ++created_texts;
  // Allocation and thread creation throw.
  try {
    text->slots_.resize(size_t{threads} + 2);
    for (uint32_t i = 0; i < threads; ++i) {
      text->threads_.emplace_back(&ArchiveText::DecodeLoop, text.get());
    }
  } catch (const std::exception& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot decode on ", threads, " threads: ", error.what(),
                     "; try fewer (--threads)"));
  }
  return text;
}

uint64_t ArchiveText::created_count() {
  return created_texts;
}

uint64_t ArchiveText::ahead_size_bytes() const {
  return slots_.size() * kPartSizeBytes;
}

ArchiveText::~ArchiveText() {
  {
    const MutexLock lock(&mutex_);
    stopping_ = true;
  }
  freed_.NotifyAll();
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

absl::StatusOr<ByteView> ArchiveText::Peek() {
  const MutexLock lock(&mutex_);
  while (true) {
    const bool all_taken = next_offset_ >= archive_->info().size_bytes;
    if (all_taken && read_count_ == taken_count_) {
      return ByteView();
    }
    Slot& slot = SlotOf(read_count_);
    while (!slot.decoded) {
      decoded_.Wait(&mutex_);
    }
    // Return the text before the damage first.
    if (used_ < slot.text.size()) {
      return ByteView(slot.text).subspan(used_);
    }
    QUIRE_RETURN_IF_ERROR(slot.status);
    slot.decoded = false;
    used_ = 0;
    ++read_count_;
    freed_.NotifyOne();
  }
}

void ArchiveText::DecodeLoop() {
  // Created when first needed, where it may fail.
  std::unique_ptr<PayloadCodec::Scratch> scratch;
  std::vector<uint8_t> block;
  while (true) {
    LogicalRange range;
    uint64_t part_index = 0;
    {
      const MutexLock lock(&mutex_);
      while (!stopping_ && taken_count_ - read_count_ == slots_.size()) {
        freed_.Wait(&mutex_);
      }
      if (stopping_ || next_offset_ >= archive_->info().size_bytes) {
        return;
      }
      range = PartFrom(next_offset_);
      next_offset_ += range.size_bytes;
      part_index = taken_count_++;
    }
    Slot& slot = SlotOf(part_index);
    try {
      if (scratch == nullptr) {
        scratch = archive_->codec().NewScratch();
      }
      slot.status = Decode(range, slot.text, block, *scratch);
    } catch (const std::exception& error) {
      slot.text.clear();
      slot.status = absl::ResourceExhaustedError(
          absl::StrCat(archive_->path(), ": cannot decode: ", error.what(),
                       "; try fewer threads (--threads)"));
    }
    {
      const MutexLock lock(&mutex_);
      slot.decoded = true;
    }
    decoded_.NotifyOne();
  }
}

LogicalRange ArchiveText::PartFrom(uint64_t offset) const {
  LogicalRange range = {
      .offset = {offset},
      .size_bytes =
          std::min(kPartSizeBytes, archive_->info().size_bytes - offset)};
  if (archive_->has_layout()) {
    return range;
  }
  // Extend to the end of the last block.
  const LogicalRange last = {{offset + range.size_bytes - 1}, 1};
  const absl::StatusOr<std::vector<BlockSlice>> slices = archive_->Plan(last);
  if (slices.ok() && slices->size() == 1) {
    const BlockSlice& slice = slices->front();
    range.size_bytes +=
        archive_->BlockSizeBytes(slice.block) - slice.offset_in_block - 1;
  }
  return range;
}

absl::Status ArchiveText::Decode(LogicalRange range, std::vector<uint8_t>& text,
                                 std::vector<uint8_t>& block,
                                 PayloadCodec::Scratch& scratch) const {
  QUIRE_ASSIGN_OR_RETURN(const std::vector<BlockSlice> slices,
                         archive_->Plan(range));
  text.resize(range.size_bytes);
  size_t filled = 0;
  // The block whose text is in `block`.
  std::optional<BlockAddress> decoded;
  for (const BlockSlice& slice : slices) {
    const MutableByteView out =
        MutableByteView(text).subspan(filled, slice.size_bytes);
    const uint32_t block_size = archive_->BlockSizeBytes(slice.block);
    const bool is_whole = slice.size_bytes == block_size;
    if (is_whole || decoded != slice.block) {
      if (!is_whole) {
        block.resize(block_size);
      }
      const absl::Status status =
          archive_->ReadBlock(slice.block, is_whole ? out : block, scratch);
      if (!status.ok()) {
        text.resize(filled);
        return status;
      }
      if (!is_whole) {
        decoded = slice.block;
      }
    }
    if (!is_whole) {
      std::ranges::copy(
          ByteView(block).subspan(slice.offset_in_block, slice.size_bytes),
          out.begin());
    }
    filled += slice.size_bytes;
  }
  return absl::OkStatus();
}

}  // namespace quire
