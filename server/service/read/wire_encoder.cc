// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/read/wire_encoder.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"

#include "codecs/base/status_macros.h"
#include "codecs/fsst/block/fsst_block.h"
#include "codecs/fsst/block/fsst_codec.h"
#include "codecs/fsst/encode/fsst_encoder.h"
#include "codecs/payload/partition_table.h"
#include "codecs/payload/payload_codec.h"
#include "server/archive/format/block_frame.h"

namespace quire {
namespace {

// Text encoded per step: a whole number of strings, and so short that the spare
// capacity for growing text is small.
constexpr size_t kStepSizeBytes = 16 * kFsstStringSizeMax;

// Bytes that live as long as the process.
class ConstantBytes final : public DecodedBlock {
 public:
  explicit ConstantBytes(ByteView bytes) : bytes_(bytes) {}

  ByteView bytes() const override { return bytes_; }

 private:
  const ByteView bytes_;
};

// A fetched block.
struct HeldBlock {
  // Text of the piece; empty if the block is in codes.
  ByteView text;
  // Owner of `text` if it had to be decoded.
  std::shared_ptr<MadeBytes> decoded;
  // A block stored in codes of the archive's table.
  std::optional<FsstBlockView> codes;
};

class AnswerEncoder {
 public:
  AnswerEncoder(BufferPool& buffers, const ServedArchive& archive,
                const AnswerPlan& plan)
      : buffers_(buffers), archive_(archive), plan_(plan) {}

  absl::StatusOr<Answer> Identity(std::vector<BlockPiece> pieces);
  // Returns nullopt if the result would not be smaller than the text.
  absl::StatusOr<std::optional<Answer>> Fsst(
      const std::vector<BlockPiece>& pieces);
  absl::StatusOr<Answer> Stored(const std::vector<BlockPiece>& pieces) const;

 private:
  // Returns the text size of the piece's part or block.
  uint32_t PartSizeBytes(size_t index) const {
    return plan_.slices[index].part_size_bytes;
  }

  absl::Status Explain(const absl::Status& status, size_t index) const {
    return ExplainBlockError(archive_, status, plan_.slices[index].block);
  }

  absl::StatusOr<Payload> PayloadOf(const BlockPiece& piece,
                                    size_t index) const;
  absl::StatusOr<HeldBlock> Open(const BlockPiece& piece, size_t index) const;
  absl::StatusOr<HeldBlock> Decode(const Payload& payload,
                                   const BlockPiece& piece, size_t index) const;

  v1::EncodingDetails DetailsOfStored(const CodecInfo& codec) const;
  // Appends the partitions of a block that its piece touches, each as a block;
  // appends a block with a recipe whole.
  absl::Status AppendStored(const BlockPiece& piece, size_t index,
                            Answer& answer) const;

  // Encodes text after the first `used` bytes of `made`. Returns false if the
  // answer's data would be no smaller than its text.
  static bool AppendCodes(const FsstEncoder& encoder, ByteView text,
                          MadeBytes& made, uint64_t& used);

  BufferPool& buffers_;
  const ServedArchive& archive_;
  const AnswerPlan& plan_;
};

absl::StatusOr<Payload> AnswerEncoder::PayloadOf(const BlockPiece& piece,
                                                 size_t index) const {
  auto payload = ParseFrame(piece.block->bytes(), PartSizeBytes(index),
                            /*is_cut=*/true);
  if (!payload.ok()) {
    return Explain(payload.status(), index);
  }
  return payload;
}

absl::StatusOr<HeldBlock> AnswerEncoder::Open(const BlockPiece& piece,
                                              size_t index) const {
  const auto text = [&piece](ByteView bytes) {
    return HeldBlock{.text = bytes.subspan(piece.offset, piece.size_bytes),
                     .decoded = nullptr,
                     .codes = std::nullopt};
  };
  if (plan_.form != BlockForm::kStored) {
    return text(piece.block->bytes());
  }
  QUIRE_ASSIGN_OR_RETURN(const Payload payload, PayloadOf(piece, index));
  if (payload.is_raw) {
    return text(payload.bytes);
  }
  const std::optional<ByteView> codes =
      payload.has_recipe ? std::nullopt : FindArchiveTableBlock(payload.bytes);
  if (!codes.has_value()) {
    return Decode(payload, piece, index);
  }
  const auto view = FsstBlockView::Parse(*codes, PartSizeBytes(index));
  if (!view.ok()) {
    return Explain(view.status(), index);
  }
  return HeldBlock{.text = {}, .decoded = nullptr, .codes = *view};
}

// Decodes a block that is not in codes of the archive's table.
absl::StatusOr<HeldBlock> AnswerEncoder::Decode(const Payload& payload,
                                                const BlockPiece& piece,
                                                size_t index) const {
  std::shared_ptr<MadeBytes> decoded = MakeBytes(buffers_, piece.size_bytes);
  const PayloadCodec& codec = archive_.archive->codec();
  const MutableByteView text = decoded->mutable_bytes().first(piece.size_bytes);
  const absl::Status status = codec.DecodeRange(
      payload, PartSizeBytes(index), piece.offset, text, *codec.NewScratch());
  if (!status.ok()) {
    return Explain(status, index);
  }
  return HeldBlock{
      .text = text, .decoded = std::move(decoded), .codes = std::nullopt};
}

Answer TextAnswer(std::vector<BlockPiece> pieces) {
  return {.encoding = v1::WIRE_ENCODING_IDENTITY,
          .pieces = std::move(pieces),
          .details = std::nullopt};
}

// Joins pieces that are adjacent in the same bytes.
void JoinNeighbours(std::vector<BlockPiece>& pieces) {
  size_t count = 0;
  for (BlockPiece& piece : pieces) {
    BlockPiece* const last = count == 0 ? nullptr : &pieces[count - 1];
    if (last != nullptr && last->block == piece.block &&
        last->offset + last->size_bytes == piece.offset) {
      last->size_bytes += piece.size_bytes;
    } else if (&pieces[count++] != &piece) {
      pieces[count - 1] = std::move(piece);
    }
  }
  pieces.resize(count);
}

absl::StatusOr<Answer> AnswerEncoder::Identity(std::vector<BlockPiece> pieces) {
  if (plan_.form != BlockForm::kStored) {
    if (plan_.copied_text_bytes > 0) {
      JoinNeighbours(pieces);
    }
    return TextAnswer(std::move(pieces));
  }
  std::vector<HeldBlock> blocks;
  uint64_t coded_bytes = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    QUIRE_ASSIGN_OR_RETURN(blocks.emplace_back(), Open(pieces[i], i));
    coded_bytes += blocks[i].codes.has_value() ? pieces[i].size_bytes : 0;
  }
  std::shared_ptr<MadeBytes> made;
  if (coded_bytes > 0) {
    made = MakeBytes(buffers_, coded_bytes);
  }
  uint32_t used = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    BlockPiece& piece = pieces[i];
    if (blocks[i].decoded != nullptr) {
      piece = {std::move(blocks[i].decoded), 0, piece.size_bytes};
      continue;
    }
    if (!blocks[i].codes.has_value()) {
      // The text of a stored block follows the frame's word.
      piece.offset = static_cast<uint32_t>(blocks[i].text.data() -
                                           piece.block->bytes().data());
      continue;
    }
    const absl::Status status = blocks[i].codes->DecodeRange(
        archive_.wire_table->decoder, piece.offset,
        made->mutable_bytes().subspan(used, piece.size_bytes));
    if (!status.ok()) {
      return Explain(status, i);
    }
    piece = {made, used, piece.size_bytes};
    used += piece.size_bytes;
  }
  return TextAnswer(std::move(pieces));
}

bool AnswerEncoder::AppendCodes(const FsstEncoder& encoder, ByteView text,
                                MadeBytes& made, uint64_t& used) {
  // The buffer holds the codes of the text and of one step more.
  const uint64_t used_max =
      made.bytes().size() - FsstEncoder::CodesSizeMax(kStepSizeBytes);
  while (!text.empty()) {
    if (used >= used_max) {
      return false;
    }
    const ByteView step = text.first(std::min(text.size(), kStepSizeBytes));
    used += encoder.Encode(step, made.mutable_bytes().subspan(used));
    text = text.subspan(step.size());
  }
  return true;
}

absl::StatusOr<std::optional<Answer>> AnswerEncoder::Fsst(
    const std::vector<BlockPiece>& pieces) {
  const WireTable& table = *archive_.wire_table;
  const uint64_t size_bytes = SizeBytesOf(pieces);
  Answer answer;
  v1::EncodingDetails details;
  details.set_table_hash(table.hash);
  std::shared_ptr<MadeBytes> made;
  std::shared_ptr<const FsstEncoder> encoder;
  uint64_t used = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const BlockPiece& piece = pieces[i];
    QUIRE_ASSIGN_OR_RETURN(const HeldBlock block, Open(piece, i));
    if (block.codes.has_value()) {
      const auto range =
          block.codes->Find(table.decoder, piece.offset, piece.size_bytes);
      if (!range.ok()) {
        return Explain(range.status(), i);
      }
      // Inner pieces begin and end with their blocks: nothing is cut there.
      details.set_front_cut_size_bytes(details.front_cut_size_bytes() +
                                       range->front_cut_size_bytes);
      details.set_back_cut_size_bytes(details.back_cut_size_bytes() +
                                      range->back_cut_size_bytes);
      answer.pieces.push_back(
          {piece.block,
           static_cast<uint32_t>(range->codes.data() -
                                 piece.block->bytes().data()),
           static_cast<uint32_t>(range->codes.size())});
      continue;
    }
    if (made == nullptr) {
      made = MakeBytes(buffers_, FsstBufferSizeMax(size_bytes));
      encoder = archive_.wire_encoders->Get(table);
    }
    const uint64_t before = used;
    if (!AppendCodes(*encoder, block.text, *made, used)) {
      return std::nullopt;
    }
    answer.pieces.push_back({made, static_cast<uint32_t>(before),
                             static_cast<uint32_t>(used - before)});
  }
  if (answer.data_size_bytes() >= size_bytes) {
    return std::nullopt;
  }
  answer.encoding = v1::WIRE_ENCODING_FSST;
  answer.details = std::move(details);
  return answer;
}

v1::EncodingDetails AnswerEncoder::DetailsOfStored(
    const CodecInfo& codec) const {
  v1::EncodingDetails details;
  details.set_codec(codec.name.data(), codec.name.size());
  uint64_t hash = 0;
  if (absl::SimpleHexAtoi(archive_.archive->info().dictionary_hash, &hash)) {
    details.set_table_hash(hash);
  }
  if (codec.needs_symbol_table) {
    details.set_symbol_table_hash(archive_.wire_table->hash);
  }
  return details;
}

absl::Status AnswerEncoder::AppendStored(const BlockPiece& piece, size_t index,
                                         Answer& answer) const {
  const CodecSpec& spec = archive_.archive->info().codec;
  const uint32_t block_size = PartSizeBytes(index);
  QUIRE_ASSIGN_OR_RETURN(const Payload payload, PayloadOf(piece, index));
  const auto add = [&](ByteView stored, uint32_t size, ByteView tail) {
    v1::StoredBlock& block = *answer.details->add_blocks();
    block.set_stored_size_bytes(
        static_cast<uint32_t>(stored.size() + tail.size()));
    block.set_size_bytes(size);
    block.set_is_uncoded(payload.is_raw);
    block.set_has_recipe(payload.has_recipe);
    answer.pieces.push_back(
        {piece.block,
         static_cast<uint32_t>(stored.data() - piece.block->bytes().data()),
         static_cast<uint32_t>(stored.size())});
    if (!tail.empty()) {
      answer.pieces.push_back({std::make_shared<ConstantBytes>(tail), 0,
                               static_cast<uint32_t>(tail.size())});
    }
  };
  const auto part_size = static_cast<uint32_t>(
      FittedPartitionSize(block_size, spec.partition_size_bytes));
  if (payload.has_recipe || part_size >= block_size) {
    add(payload.bytes, block_size, {});
    return absl::OkStatus();
  }
  PartitionTable table;
  if (!payload.is_raw) {
    const absl::Status status =
        table.Parse(payload.bytes, PartitionCount(block_size, part_size));
    if (!status.ok()) {
      return Explain(status, index);
    }
  }
  const uint32_t end = piece.offset + piece.size_bytes;
  for (uint32_t begin = piece.offset - piece.offset % part_size; begin < end;
       begin += part_size) {
    const size_t partition = begin / part_size;
    const uint32_t size = std::min(part_size, block_size - begin);
    if (payload.is_raw) {
      add(payload.bytes.subspan(begin, size), size, {});
    } else {
      add(table.Stored(partition), size,
          PartitionTail(spec.id, partition + 1 == table.count()));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Answer> AnswerEncoder::Stored(
    const std::vector<BlockPiece>& pieces) const {
  const CodecSpec& spec = archive_.archive->info().codec;
  Answer answer{.encoding = v1::WIRE_ENCODING_STORED,
                .pieces = {},
                .details = DetailsOfStored(*FindCodec(spec.id))};
  for (size_t i = 0; i < pieces.size(); ++i) {
    QUIRE_RETURN_IF_ERROR(AppendStored(pieces[i], i, answer));
  }
  uint64_t sent_bytes = 0;
  bool has_recipe = false;
  for (const v1::StoredBlock& block : answer.details->blocks()) {
    sent_bytes += block.size_bytes();
    has_recipe |= block.has_recipe();
  }
  if (has_recipe) {
    answer.details->set_partition_size_bytes(spec.partition_size_bytes);
  }
  // The first block is sent from its start or from that of a partition; its
  // size identifies which.
  const v1::StoredBlock& first = answer.details->blocks(0);
  const uint32_t front =
      first.size_bytes() == PartSizeBytes(0)
          ? pieces.front().offset
          : pieces.front().offset % spec.partition_size_bytes;
  answer.details->set_front_cut_size_bytes(front);
  answer.details->set_back_cut_size_bytes(
      static_cast<uint32_t>(sent_bytes - front - SizeBytesOf(pieces)));
  return answer;
}

}  // namespace

uint64_t FsstBufferSizeMax(uint64_t size_bytes) {
  return size_bytes + FsstEncoder::CodesSizeMax(kStepSizeBytes);
}

absl::StatusOr<Answer> EncodeAnswer(BufferPool& buffers,
                                    const ServedArchive& archive,
                                    const AnswerPlan& plan,
                                    std::vector<BlockPiece> pieces) {
  AnswerEncoder encoder(buffers, archive, plan);
  if (plan.encoding == v1::WIRE_ENCODING_STORED && !pieces.empty()) {
    return encoder.Stored(pieces);
  }
  if (plan.encoding == v1::WIRE_ENCODING_FSST) {
    QUIRE_ASSIGN_OR_RETURN(std::optional<Answer> answer, encoder.Fsst(pieces));
    if (answer.has_value()) {
      return *std::move(answer);
    }
  }
  return encoder.Identity(std::move(pieces));
}

}  // namespace quire
