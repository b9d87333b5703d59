// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/blocks/block_stage.h"

#include <algorithm>
#include <utility>

#include "codecs/base/status_macros.h"
#include "server/archive/format/archive_format.h"
#include "server/archive/kept_blocks.h"

namespace quire {
namespace {

size_t BlockSizeMax(const BlockStageOptions& options) {
  return options.cutter != nullptr ? kBlockSizeBytesMax
                                   : options.block_size_bytes;
}

}  // namespace

BlockStage::BlockStage(ArchiveWriter& writer, const BlockStageOptions& options,
                       OnBlock on_block)
    : writer_(writer), options_(options), on_block_(std::move(on_block)) {}

absl::StatusOr<std::unique_ptr<BlockStage>> BlockStage::Create(
    const PayloadCodec& codec, ArchiveWriter& writer,
    const BlockStageOptions& options, OnBlock on_block) {
  std::unique_ptr<BlockStage> stage(
      new BlockStage(writer, options, std::move(on_block)));
  QUIRE_ASSIGN_OR_RETURN(
      stage->encoder_,
      ParallelEncoder::Create(
          codec, options.threads, BlockSizeMax(options),
          [stage = stage.get()](ByteView raw, const Payload& payload) {
            stage->on_block_({.size_bytes = raw.size(),
                              .stored_size_bytes = payload.bytes.size(),
                              .is_raw = payload.is_raw});
            return stage->writer_.AppendBlock(raw, payload);
          }));
  return stage;
}

absl::StatusOr<MutableByteView> BlockStage::Buffer() {
  if (block_.empty()) {
    QUIRE_RETURN_IF_ERROR(StartBlock());
  }
  return block_.subspan(block_filled_);
}

absl::Status BlockStage::StartBlock() {
  is_kept_ = false;
  // Kept blocks come first in a segment, so that the writer has all earlier
  // blocks.
  if (options_.may_be_kept && segment_encoded_count_ == 0) {
    QUIRE_ASSIGN_OR_RETURN(is_kept_, writer_.HasKeptBlock());
  }
  if (is_kept_) {
    unused_.resize(BlockSizeMax(options_));
    block_ = unused_;
  } else {
    QUIRE_ASSIGN_OR_RETURN(block_, encoder_->Acquire());
  }
  if (options_.cutter != nullptr) {
    block_ = block_.first(options_.cutter->SizeAt(submitted_bytes_));
  }
  return absl::OkStatus();
}

absl::Status BlockStage::Advance(size_t size_bytes) {
  block_filled_ += size_bytes;
  return block_filled_ == block_.size() ? SubmitBlock() : absl::OkStatus();
}

absl::Status BlockStage::EndSegment() {
  if (block_filled_ > 0) {
    QUIRE_RETURN_IF_ERROR(SubmitBlock());
  }
  // The next segment may begin with a kept block.
  block_ = {};
  segment_encoded_count_ = 0;
  return encoder_->Drain();
}

absl::Status BlockStage::EncodeText(ByteView text) {
  const size_t size_max = BlockSizeMax(options_);
  for (size_t count = (text.size() + size_max - 1) / size_max; count > 0;
       --count) {
    const size_t size = text.size() / count;
    QUIRE_ASSIGN_OR_RETURN(const MutableByteView raw, encoder_->Acquire());
    std::ranges::copy(text.first(size), raw.begin());
    encoder_->Submit(size);
    text = text.subspan(size);
  }
  return absl::OkStatus();
}

absl::Status BlockStage::CopyIfDecodable(ByteView text,
                                         const Payload& payload) {
  QUIRE_ASSIGN_OR_RETURN(const MutableByteView raw, encoder_->Acquire());
  std::ranges::copy(text, raw.begin());
  encoder_->SubmitEncoded(text.size(), payload);
  return absl::OkStatus();
}

absl::Status BlockStage::Copy(uint64_t size_bytes, const Payload& payload) {
  QUIRE_RETURN_IF_ERROR(encoder_->Drain());
  return writer_.CopyBlock(size_bytes, payload);
}

absl::Status BlockStage::SubmitBlock() {
  const size_t size_bytes = std::exchange(block_filled_, 0);
  block_ = {};
  submitted_bytes_ += size_bytes;
  if (is_kept_) {
    return KeepBlock(size_bytes);
  }
  ++segment_encoded_count_;
  QUIRE_ASSIGN_OR_RETURN(const bool is_copied, CopyBlock(size_bytes));
  if (!is_copied) {
    encoder_->Submit(size_bytes);
  }
  return absl::OkStatus();
}

absl::Status BlockStage::KeepBlock(size_t size_bytes) {
  QUIRE_ASSIGN_OR_RETURN(const KeptBlock kept, writer_.KeepBlock(size_bytes));
  on_block_({.size_bytes = size_bytes,
             .stored_size_bytes = kept.payload_size_bytes,
             .is_raw = kept.is_raw,
             .is_kept = true});
  return absl::OkStatus();
}

absl::StatusOr<bool> BlockStage::CopyBlock(size_t size_bytes) {
  if (options_.copied == nullptr) {
    return false;
  }
  const Archive& archive = *options_.copied;
  QUIRE_ASSIGN_OR_RETURN(
      const std::vector<BlockSlice> slices,
      archive.Plan({{submitted_bytes_ - size_bytes}, size_bytes}));
  if (slices.size() != 1 ||
      archive.BlockSizeBytes(slices[0].block) != size_bytes) {
    return false;
  }
  QUIRE_ASSIGN_OR_RETURN(const Payload payload,
                         archive.ReadPayload(slices[0].block, frame_));
  encoder_->SubmitEncoded(size_bytes, payload);
  ++copied_block_count_;
  return true;
}

bool HasBlocksOf(const Archive& archive, const ArchiveWriterOptions& options,
                 const CodecContext& context) {
  const CodecSpec& codec = options.codec;
  const CodecSpec& found = archive.info().codec;
  const CodecInfo* const info = FindCodec(codec.id);
  return info != nullptr && !archive.info().has_recipes &&
         found.id == codec.id && found.level == codec.level &&
         found.partition_size_bytes == codec.partition_size_bytes &&
         std::ranges::equal(archive.dictionary(),
                            AsBytes(context.dictionary)) &&
         (!info->needs_symbol_table ||
          std::ranges::equal(archive.symbol_table(),
                             AsBytes(context.symbol_table)));
}

}  // namespace quire
