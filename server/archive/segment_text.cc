// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/segment_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "server/archive/format/block_frame.h"

namespace quire {
namespace {

constexpr size_t kKeptSizeBytes = size_t{16} << 20;

}  // namespace

SegmentText::SegmentText(const SegmentReader& segment,
                         const PayloadCodec* codec,
                         uint32_t block_size_bytes_max)
    : segment_(segment),
      codec_(codec),
      block_count_max_(kKeptSizeBytes / block_size_bytes_max),
      scratch_(codec == nullptr ? nullptr : codec->NewScratch()) {}

absl::Status SegmentText::Visit(uint64_t offset, uint64_t size_bytes,
                                Visitor visit) {
  const SegmentLayout& layout = segment_.layout();
  const uint64_t end = offset + size_bytes;
  if (size_bytes == 0) {
    return absl::OkStatus();
  }
  for (uint64_t run = layout.RunAt(offset); offset < end; ++run) {
    SegmentLayout::StoredPiece piece = layout.PieceOf(run, offset);
    piece.size_bytes = std::min(piece.size_bytes, end - offset);
    offset += piece.size_bytes;
    uint64_t index = segment_.blocks().BlockAt(piece.stored_offset);
    uint64_t begin = piece.stored_offset - segment_.blocks().StartOf(index);
    for (; piece.size_bytes > 0; ++index, begin = 0) {
      const uint64_t part_size_bytes = std::min<uint64_t>(
          piece.size_bytes, segment_.BlockSizeBytes(index) - begin);
      const Kept& block = Block(index);
      QUIRE_RETURN_IF_ERROR(
          block.status.ok()
              ? visit(part_size_bytes,
                      ByteView(block.text).subspan(begin, part_size_bytes))
              : visit(part_size_bytes, block.status));
      piece.size_bytes -= part_size_bytes;
    }
  }
  return absl::OkStatus();
}

const SegmentText::Kept& SegmentText::Block(uint64_t block_index) {
  const auto known = std::ranges::find(blocks_, block_index, &Kept::index);
  if (known != blocks_.end()) {
    return *known;
  }
  if (blocks_.size() < block_count_max_) {
    blocks_.emplace_back();
    oldest_ = blocks_.size() - 1;
  }
  Kept& kept = blocks_[oldest_];
  oldest_ = (oldest_ + 1) % blocks_.size();
  kept.index = block_index;
  kept.text.resize(segment_.BlockSizeBytes(block_index));
  kept.status = ReadBlock(block_index, kept.text);
  return kept;
}

absl::Status SegmentText::ReadBlock(uint64_t block_index,
                                    MutableByteView text) {
  QUIRE_RETURN_IF_ERROR(segment_.ReadFrame(block_index, frame_).status());
  if (codec_ != nullptr) {
    return segment_.DecodeCheckedFrame(block_index, frame_, text, *codec_,
                                       *scratch_);
  }
  QUIRE_ASSIGN_OR_RETURN(const Payload payload,
                         ParseFrame(frame_, text.size()));
  if (!payload.is_raw) {
    return absl::DataLossError(
        absl::StrCat(segment_.file(), ": block ", block_index,
                     ": cannot be decoded without the dictionary"));
  }
  std::ranges::copy(payload.bytes, text.begin());
  return absl::OkStatus();
}

}  // namespace quire
