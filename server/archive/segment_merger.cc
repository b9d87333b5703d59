// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/segment_merger.h"

#include <algorithm>
#include <utility>

#include "codecs/base/status_macros.h"
#include "server/archive/carried_documents.h"
#include "server/archive/format/block_frame.h"

namespace quire {

namespace {

// So that segments of empty documents are joined, too.
uint64_t WeightOf(const ManifestSegment& segment) {
  return segment.size_bytes + segment.document_count;
}

}  // namespace

size_t FirstToJoin(std::span<const ManifestSegment> segments,
                   uint64_t size_bytes_max, LayoutSegments layouts) {
  if (segments.empty()) {
    return 0;
  }
  size_t first = segments.size() - 1;
  uint64_t size_bytes = segments[first].size_bytes;
  uint64_t weight = WeightOf(segments[first]);
  while (first > 0) {
    const ManifestSegment& segment = segments[first - 1];
    size_bytes += segment.size_bytes;
    const bool has_layout =
        segment.has_layout() || segments[first].has_layout();
    if ((has_layout && layouts == LayoutSegments::kStay) ||
        WeightOf(segment) / 2 >= weight || size_bytes > size_bytes_max) {
      break;
    }
    weight += WeightOf(segment);
    --first;
  }
  return first;
}

SegmentMerger::SegmentMerger(SegmentWriter& writer, const PayloadCodec& codec,
                             uint32_t block_size_bytes, MemberCount* members,
                             const std::atomic<bool>* cancel)
    : writer_(writer),
      codec_(codec),
      block_size_bytes_(block_size_bytes),
      members_(members),
      cancel_(cancel),
      scratch_(codec.NewScratch()) {}

absl::Status SegmentMerger::Add(const SegmentReader& segment) {
  const uint64_t block_count = segment.block_count();
  for (uint64_t i = 0; i < block_count; ++i) {
    if (cancel_ != nullptr && *cancel_) {
      return absl::CancelledError("joining segments was interrupted");
    }
    QUIRE_ASSIGN_OR_RETURN(Block block, Read(segment, i));
    QUIRE_ASSIGN_OR_RETURN(const bool is_joined, JoinPending(block));
    if (is_joined) {
      continue;
    }
    QUIRE_RETURN_IF_ERROR(WritePending());
    pending_ = std::move(block);
    // Only blocks at a seam are joined.
    if (i + 1 < block_count) {
      QUIRE_RETURN_IF_ERROR(WritePending());
    }
  }
  return writer_.CarryDocuments(segment, {});
}

absl::StatusOr<SegmentMerger::Block> SegmentMerger::Read(
    const SegmentReader& segment, uint64_t block_index) const {
  Block block;
  block.size_bytes = segment.BlockSizeBytes(block_index);
  QUIRE_RETURN_IF_ERROR(segment.ReadFrame(block_index, block.frame).status());
  QUIRE_ASSIGN_OR_RETURN(block.payload,
                         ParseFrame(block.frame, block.size_bytes));
  return block;
}

absl::StatusOr<bool> SegmentMerger::JoinPending(const Block& next) {
  if (!pending_.has_value() ||
      pending_->size_bytes + next.size_bytes > block_size_bytes_ ||
      // Members are whole in one block, and stay where they are.
      pending_->payload.has_recipe || next.payload.has_recipe) {
    return false;
  }
  std::vector<uint8_t> text(pending_->size_bytes + next.size_bytes);
  const MutableByteView view(text);
  QUIRE_RETURN_IF_ERROR(Decode(*pending_, view.first(pending_->size_bytes)));
  QUIRE_RETURN_IF_ERROR(Decode(next, view.subspan(pending_->size_bytes)));
  Block joined;
  joined.size_bytes = text.size();
  joined.frame.resize(codec_.StoredSizeMax(text.size()));
  const absl::StatusOr<Payload> encoded =
      codec_.Encode(text, joined.frame, *scratch_);
  QUIRE_RETURN_IF_ERROR(encoded.status());
  if (encoded->has_recipe) {
    return false;
  }
  std::vector<uint8_t> decoded(text.size());
  if (!encoded->is_raw && encoded->bytes.size() < text.size() &&
      codec_.Decode(*encoded, decoded, *scratch_).ok() && decoded == text) {
    joined.payload = *encoded;
  } else {
    joined.frame = std::move(text);
    joined.payload = {.bytes = joined.frame, .is_raw = true};
  }
  if (members_ != nullptr) {
    const Block* const pending = &*pending_;
    for (const Block* const block : {pending, &next}) {
      QUIRE_RETURN_IF_ERROR(members_->Remove(
          MemberOf(block->payload, codec_.partition_size_bytes() != 0),
          block->size_bytes, block->payload.bytes.size()));
    }
    members_->Add(MemberOf(joined.payload, codec_.partition_size_bytes() != 0),
                  joined.size_bytes, joined.payload.bytes.size());
  }
  pending_ = std::move(joined);
  return true;
}

absl::Status SegmentMerger::Decode(const Block& block, MutableByteView text) {
  if (block.payload.is_raw) {
    std::ranges::copy(block.payload.bytes, text.begin());
    return absl::OkStatus();
  }
  return codec_.Decode(block.payload, text, *scratch_);
}

absl::Status SegmentMerger::WritePending() {
  if (!pending_.has_value()) {
    return absl::OkStatus();
  }
  const Block block = *std::exchange(pending_, std::nullopt);
  return writer_.CopyBlock(block.size_bytes, block.payload);
}

}  // namespace quire
