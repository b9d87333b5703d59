// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/index/block_spans.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "server/archive/format/column.h"

namespace quire {

void AppendBlock(uint64_t size_bytes, std::vector<BlockSpan>& spans) {
  if (spans.empty() || spans.back().size_bytes != size_bytes) {
    spans.push_back({.block_count = 0, .size_bytes = size_bytes});
  }
  ++spans.back().block_count;
}

std::string EncodeBlockSpans(std::span<const BlockSpan> spans) {
  std::string section;
  std::vector<uint64_t> column(spans.size());
  std::ranges::transform(spans, column.begin(), &BlockSpan::block_count);
  AppendColumn(column, section);
  std::ranges::transform(spans, column.begin(), &BlockSpan::size_bytes);
  AppendColumn(column, section);
  return section;
}

// A span takes 24 bytes, a start 33 bits for blocks of 64 KiB; searching spans
// takes fewer and cheaper steps.
bool BlockSpans::AreFew(uint64_t span_count, uint64_t block_count) {
  return span_count <= 16 || span_count <= block_count / 6;
}

BlockSpans::BlockSpans(const std::vector<BlockSpan>& spans) {
  for (const BlockSpan& span : spans) {
    block_count_ += span.block_count;
    size_bytes_ += span.block_count * span.size_bytes;
  }
  if (block_count_ == 0) {
    return;
  }
  uint64_t block = 0;
  uint64_t start = 0;
  if (AreFew(spans.size(), block_count_)) {
    spans_.reserve(spans.size());
    for (const BlockSpan& span : spans) {
      spans_.push_back({block, start, span.size_bytes});
      block += span.block_count;
      start += span.block_count * span.size_bytes;
    }
    return;
  }
  EliasFano::Builder starts(block_count_ + 1, size_bytes_);
  for (const BlockSpan& span : spans) {
    for (uint64_t i = 0; i < span.block_count; ++i) {
      starts.Add(start);
      start += span.size_bytes;
    }
  }
  starts.Add(start);
  starts_ = std::move(starts).Build();
}

absl::StatusOr<BlockSpans> BlockSpans::Parse(ByteView section,
                                             const Expected& expected) {
  QUIRE_ASSIGN_OR_RETURN(const ColumnView counts,
                         ColumnView::Take(section, expected.span_count));
  QUIRE_ASSIGN_OR_RETURN(const ColumnView sizes,
                         ColumnView::Parse(section, expected.span_count));
  std::vector<BlockSpan> spans;
  spans.reserve(expected.span_count);
  uint64_t blocks_left = expected.block_count;
  uint64_t bytes_left = expected.size_bytes;
  for (uint64_t i = 0; i < expected.span_count; ++i) {
    const BlockSpan span = {counts[i], sizes[i]};
    // The last comparison divides by the size, which is at least 1.
    if (span.block_count == 0 || span.block_count > blocks_left ||
        span.size_bytes == 0 ||
        span.size_bytes > expected.block_size_bytes_max ||
        span.block_count > bytes_left / span.size_bytes) {
      return absl::DataLossError(absl::StrCat(
          "span ", i, " has ", span.block_count, " of ", blocks_left,
          " blocks, each with ", span.size_bytes, " bytes of text of ",
          bytes_left, ", expected 1 to ", expected.block_size_bytes_max));
    }
    if (i > 0 && spans.back().size_bytes == span.size_bytes) {
      return absl::DataLossError(
          absl::StrCat("span ", i, " has blocks of the same size as the span ",
                       "before it: ", span.size_bytes));
    }
    spans.push_back(span);
    blocks_left -= span.block_count;
    bytes_left -= span.block_count * span.size_bytes;
  }
  if (blocks_left != 0 || bytes_left != 0) {
    return absl::DataLossError(absl::StrCat(
        "spans have ", expected.block_count - blocks_left, " blocks and ",
        expected.size_bytes - bytes_left, " bytes of text, expected ",
        expected.block_count, " and ", expected.size_bytes));
  }
  return BlockSpans(spans);
}

const BlockSpans::Placed& BlockSpans::SpanOf(uint64_t block_index) const {
  return *std::prev(
      std::ranges::upper_bound(spans_, block_index, {}, &Placed::first_block));
}

uint64_t BlockSpans::BlockAt(uint64_t offset) const {
  if (!spans_.empty()) {
    const Placed& span = *std::prev(
        std::ranges::upper_bound(spans_, offset, {}, &Placed::start));
    return span.first_block + (offset - span.start) / span.size_bytes;
  }
  // Finds the last block that starts at or before the byte.
  uint64_t low = 0;
  uint64_t high = block_count_ - 1;
  while (low < high) {
    const uint64_t middle = low + (high - low + 1) / 2;
    if (starts_[middle] <= offset) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

uint64_t BlockSpans::StartOf(uint64_t block_index) const {
  if (spans_.empty()) {
    return starts_[block_index];
  }
  const Placed& span = SpanOf(block_index);
  return span.start + (block_index - span.first_block) * span.size_bytes;
}

uint32_t BlockSpans::SizeOf(uint64_t block_index) const {
  return static_cast<uint32_t>(spans_.empty() ? starts_[block_index + 1] -
                                                    starts_[block_index]
                                              : SpanOf(block_index).size_bytes);
}

uint64_t BlockSpans::MemoryBytes() const {
  return spans_.capacity() * sizeof(Placed) + starts_.MemoryBytes();
}

uint64_t BlockSpans::EstimateBytes(const Expected& expected) {
  return AreFew(expected.span_count, expected.block_count)
             ? expected.span_count * sizeof(Placed)
             : EliasFano::EstimateBytes(expected.block_count + 1,
                                        expected.size_bytes);
}

}  // namespace quire
