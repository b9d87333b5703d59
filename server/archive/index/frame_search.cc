// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/index/frame_search.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "codecs/base/endian.h"
#include "server/archive/format/segment_format.h"

namespace quire {
namespace {

constexpr uint64_t kFrameSizeBytesMin = kFrameOverheadSizeBytes + 1;
constexpr size_t kWindowSizeBytes = size_t{4} << 20;
// Blocks tried on either side of the expected one where no other frame follows,
// or where the work is used up.
constexpr uint64_t kNearbyMax = 64;
// Limits the time that bytes take which look like frames: a few seconds.
constexpr uint64_t kWorkBytesMax = uint64_t{1} << 35;
constexpr uint64_t kChecksumWorkBytes = 128;

uint64_t DivideUp(uint64_t size_bytes, uint64_t unit) {
  return size_bytes / unit + (size_bytes % unit != 0 ? 1 : 0);
}

}  // namespace

FrameSearch::FrameSearch(Read read, uint32_t segment_number,
                         uint64_t blocks_end, const BlockSpans& blocks)
    : read_(std::move(read)),
      segment_number_(segment_number),
      blocks_end_(blocks_end),
      blocks_(blocks) {
  uint64_t size_bytes_max = 0;
  for (uint64_t i = 0; i < blocks.block_count(); ++i) {
    size_bytes_max = std::max<uint64_t>(size_bytes_max, blocks.SizeOf(i));
  }
  frame_size_bytes_max_ = size_bytes_max + kFrameOverheadSizeBytes;
}

EliasFano FrameSearch::Run() {
  const uint64_t count = blocks_.block_count();
  EliasFano::Builder frames(count + 1, blocks_end_);
  uint64_t position = kSegmentHeaderSizeBytes;
  for (uint64_t i = 0; i < count;) {
    const uint64_t size_bytes = PossibleSizeAt(position);
    if (size_bytes > 0 && IsBlock(i, position, size_bytes)) {
      frames.Add(position);
      position += size_bytes;
      ++i;
      continue;
    }
    const Found next = FindNext(i, position);
    for (uint64_t lost = i; lost < next.block_index; ++lost) {
      frames.Add(position + (lost - i));
    }
    i = next.block_index;
    position = next.offset;
  }
  frames.Add(blocks_end_);
  return std::move(frames).Build();
}

ByteView FrameSearch::BytesAt(uint64_t offset, size_t size_bytes) {
  if (offset < window_start_ ||
      offset + size_bytes > window_start_ + window_.size()) {
    window_.resize(std::min<uint64_t>(kWindowSizeBytes, blocks_end_ - offset));
    window_start_ = offset;
    read_(offset, window_);
  }
  return ByteView(window_).subspan(offset - window_start_, size_bytes);
}

uint64_t FrameSearch::PossibleSizeAt(uint64_t offset) {
  if (blocks_end_ - offset < kFrameSizeBytesMin) {
    return 0;
  }
  const std::optional<FrameWord> word = FindFrameWord(
      LoadLittleEndian<uint32_t>(BytesAt(offset, kFrameWordSizeBytes).data()));
  if (!word.has_value()) {
    return 0;
  }
  const uint64_t size_bytes =
      uint64_t{word->payload_size_bytes} + kFrameOverheadSizeBytes;
  return size_bytes <= frame_size_bytes_max_ &&
                 size_bytes <= blocks_end_ - offset
             ? size_bytes
             : 0;
}

bool FrameSearch::IsBlock(uint64_t block_index, uint64_t offset,
                          uint64_t size_bytes) {
  if (size_bytes > blocks_.SizeOf(block_index) + kFrameOverheadSizeBytes ||
      // The frames after it must fit, too.
      (blocks_end_ - offset - size_bytes) / kFrameSizeBytesMin <
          blocks_.block_count() - block_index - 1) {
    return false;
  }
  work_bytes_ += size_bytes + kChecksumWorkBytes;
  const bool is_block =
      IsFrameOf({segment_number_, block_index}, BytesAt(offset, size_bytes));
  if (is_block) {
    work_bytes_ -= size_bytes + kChecksumWorkBytes;
  }
  return is_block;
}

FrameSearch::Candidates FrameSearch::CandidatesAt(uint64_t lost, uint64_t start,
                                                  uint64_t offset) const {
  const uint64_t count = blocks_.block_count();
  const uint64_t distance = offset - start;
  const uint64_t rest = blocks_end_ - offset;
  // Blocks before the position, and those from it on, have frames of at least
  // the least and at most the largest size.
  const uint64_t left_max = std::min(count, rest / kFrameSizeBytesMin);
  const uint64_t left_min =
      std::min(count, DivideUp(rest, frame_size_bytes_max_));
  Candidates candidates;
  candidates.first = std::max(
      lost + std::max<uint64_t>(1, DivideUp(distance, frame_size_bytes_max_)),
      count - left_max);
  candidates.last =
      std::min(lost + distance / kFrameSizeBytesMin, count - left_min);
  const uint64_t mean_size_bytes = std::max(
      kFrameSizeBytesMin, (blocks_end_ - kSegmentHeaderSizeBytes) / count);
  candidates.expected =
      std::clamp(lost + distance / mean_size_bytes, candidates.first,
                 std::max(candidates.first, candidates.last));
  return candidates;
}

uint64_t FrameSearch::FindBlock(const Candidates& candidates, uint64_t offset,
                                uint64_t size_bytes) {
  const uint64_t count = blocks_.block_count();
  const uint64_t next = offset + size_bytes;
  // With the bytes of the word after it, so that the window stays in place.
  BytesAt(offset, std::min<uint64_t>(size_bytes + kFrameWordSizeBytes,
                                     blocks_end_ - offset));
  const bool is_likely = next == blocks_end_ || PossibleSizeAt(next) > 0;
  const uint64_t far_max =
      is_likely && work_bytes_ < kWorkBytesMax ? count : kNearbyMax;
  for (uint64_t away = 0; away <= far_max; ++away) {
    const bool has_above = away <= candidates.last - candidates.expected;
    const bool has_below = away <= candidates.expected - candidates.first;
    if (!has_above && !has_below) {
      break;
    }
    if (has_above && IsBlock(candidates.expected + away, offset, size_bytes)) {
      return candidates.expected + away;
    }
    if (has_below && away > 0 &&
        IsBlock(candidates.expected - away, offset, size_bytes)) {
      return candidates.expected - away;
    }
  }
  return count;
}

FrameSearch::Found FrameSearch::FindNext(uint64_t lost, uint64_t offset) {
  const uint64_t count = blocks_.block_count();
  for (uint64_t at = offset + kFrameSizeBytesMin; at < blocks_end_; ++at) {
    const uint64_t size_bytes = PossibleSizeAt(at);
    if (size_bytes == 0) {
      continue;
    }
    const Candidates candidates = CandidatesAt(lost, offset, at);
    if (candidates.first > candidates.last || candidates.last >= count) {
      continue;
    }
    const uint64_t found = FindBlock(candidates, at, size_bytes);
    if (found < count) {
      return {.block_index = found, .offset = at};
    }
  }
  return {.block_index = count, .offset = blocks_end_};
}

}  // namespace quire
