// SPDX-License-Identifier: Apache-2.0
#include "codecs/payload/payload_codec.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "codecs/base/check.h"
#include "codecs/base/status_macros.h"
#include "codecs/payload/partition_table.h"

namespace quire {
namespace {

// Memory of a scratch for recipes in addition to the partition coder's: the
// encoder's tables, a partition of the inflated text, a member, and the recipe.
constexpr size_t kRecipeScratchSizeMax = size_t{4} << 20;

// Reads the text of a payload with a recipe, one decoded partition at a time.
class CodedTextReader {
 public:
  // `buffer` holds the last decoded partition, `of_coder` is the coder's.
  CodedTextReader(const PartitionCoder& coder, const PartitionTable& table,
                  size_t text_size, size_t partition_size,
                  std::vector<uint8_t>& buffer, BlockCodec::Scratch& of_coder)
      : coder_(coder),
        table_(table),
        text_size_(text_size),
        partition_size_(partition_size),
        buffer_(buffer),
        of_coder_(of_coder) {}

  // Returns the text from `offset` on, at least one byte and at most
  // `size_max`. Valid until the next call. REQUIRES: offset < text size,
  // size_max > 0.
  absl::StatusOr<ByteView> PieceAt(size_t offset, size_t size_max) {
    const size_t index = offset / partition_size_;
    const size_t begin = index * partition_size_;
    if (decoded_ != index) {
      decoded_.reset();
      buffer_.resize(std::min(partition_size_, text_size_ - begin));
      QUIRE_RETURN_IF_ERROR(coder_.Decode(table_.Stored(index),
                                          index + 1 == table_.count(),
                                          buffer_.size(), buffer_, of_coder_));
      decoded_ = index;
    }
    const ByteView rest = ByteView(buffer_).subspan(offset - begin);
    return rest.first(std::min(rest.size(), size_max));
  }

  absl::Status Copy(size_t offset, MutableByteView to) {
    while (!to.empty()) {
      QUIRE_ASSIGN_OR_RETURN(const ByteView piece, PieceAt(offset, to.size()));
      std::ranges::copy(piece, to.begin());
      to = to.subspan(piece.size());
      offset += piece.size();
    }
    return absl::OkStatus();
  }

 private:
  const PartitionCoder& coder_;
  const PartitionTable& table_;
  const size_t text_size_;
  const size_t partition_size_;
  std::vector<uint8_t>& buffer_;
  BlockCodec::Scratch& of_coder_;
  std::optional<size_t> decoded_;
};

// Calls visit(first, wanted) for each part that has some of the bytes [from,
// to) of the block: the first of them, and the part's memory for them.
template <typename Visit>
absl::Status ForEachWanted(std::span<const BlockPart> parts, size_t from,
                           size_t to, const Visit& visit) {
  for (const BlockPart& part : parts) {
    const size_t begin = part.offset_in_block;
    const size_t first = std::max(from, begin);
    const size_t last = std::min(to, begin + part.text.size());
    if (first < last) {
      QUIRE_RETURN_IF_ERROR(
          visit(first, part.text.subspan(first - begin, last - first)));
    }
  }
  return absl::OkStatus();
}

absl::Status InPayload(const CodecInfo& info, ByteView stored,
                       const absl::Status& status) {
  return absl::IsDataLoss(status) ? absl::DataLossError(absl::StrCat(
                                        info.name, " block of ", stored.size(),
                                        " stored bytes: ", status.message()))
                                  : status;
}

}  // namespace

struct PayloadCodec::PayloadScratch final : public Scratch {
  std::unique_ptr<Scratch> of_coder;
  // For payloads with a recipe, created for the first one.
  Recipe recipe;
  std::vector<uint8_t> text;
  std::vector<uint8_t> member;
  std::optional<DeflateEncoder> encoder;
  // For encoding.
  std::optional<BlockInflater> inflater;
  std::string encoded_recipe;
  std::vector<uint8_t> encoded_text;
};

size_t DecodeScratchBytesMax(CodecId codec, size_t block_size_bytes_max,
                             bool has_recipes) {
  return has_recipes ? kRecipeScratchSizeMax +
                           PartitionScratchBytesMax(codec, kBlockSizeBytesMax)
                     : PartitionScratchBytesMax(codec, block_size_bytes_max);
}

PayloadCodec::PayloadCodec(const CodecInfo& info,
                           std::unique_ptr<const PartitionCoder> coder,
                           uint32_t partition_size_bytes,
                           size_t inflated_text_size_max)
    : info_(info),
      coder_(std::move(coder)),
      partition_size_(partition_size_bytes),
      inflated_text_size_max_(inflated_text_size_max) {
  QUIRE_CHECK(partition_size_ == 0 || IsPartitionSize(partition_size_));
}

size_t PayloadCodec::EncodedTextSizeMax(size_t text_size) const {
  const size_t size = FittedPartitionSize(text_size, partition_size_);
  const size_t last_size = text_size % size;
  return PartitionTableSizeMax(PartitionCount(text_size, size)) +
         text_size / size * coder_->StoredSizeMax(size) +
         (last_size == 0 ? 0 : coder_->StoredSizeMax(last_size));
}

size_t PayloadCodec::StoredSizeMax(size_t raw_size) const {
  return EncodedTextSizeMax(raw_size);
}

std::unique_ptr<PayloadCodec::Scratch> PayloadCodec::NewScratch() const {
  auto scratch = std::make_unique<PayloadScratch>();
  scratch->of_coder = coder_->NewScratch();
  return scratch;
}

size_t PayloadCodec::MemoryBytes() const {
  return sizeof(*this) + coder_->MemoryBytes();
}

absl::StatusOr<size_t> PayloadCodec::EncodeText(ByteView text,
                                                MutableByteView stored,
                                                Scratch& of_coder) const {
  const size_t partition_size =
      FittedPartitionSize(text.size(), partition_size_);
  const size_t count = PartitionCount(text.size(), partition_size);
  std::array<uint32_t, kPartitionCountMax> sizes;
  // The table's size is known after the partitions are coded.
  const size_t table_size_max = PartitionTableSizeMax(count);
  size_t end = table_size_max;
  for (size_t i = 0; i < count; ++i) {
    const ByteView rest = text.subspan(i * partition_size);
    QUIRE_ASSIGN_OR_RETURN(
        const size_t size,
        coder_->Encode(rest.first(std::min(rest.size(), partition_size)),
                       i + 1 == count, stored.subspan(end), of_coder));
    sizes[i] = static_cast<uint32_t>(size);
    end += size;
  }
  const size_t table_size =
      WritePartitionTable(std::span(sizes).first(count), stored);
  if (table_size != table_size_max) {
    std::memmove(stored.data() + table_size, stored.data() + table_size_max,
                 end - table_size_max);
  }
  return table_size + (end - table_size_max);
}

absl::StatusOr<std::optional<ByteView>> PayloadCodec::EncodeInflated(
    ByteView raw, PayloadScratch& scratch) const {
  if (!scratch.inflater.has_value()) {
    scratch.inflater.emplace(inflated_text_size_max_, known_);
  }
  if (!scratch.inflater->Inflate(raw)) {
    return std::nullopt;
  }
  const ByteView text = scratch.inflater->text();
  scratch.encoded_recipe.clear();
  AppendRecipe(scratch.inflater->recipe(), scratch.encoded_recipe);
  const ByteView recipe = AsBytes(scratch.encoded_recipe);
  std::vector<uint8_t>& encoded = scratch.encoded_text;
  encoded.resize(std::max(encoded.size(),
                          recipe.size() + EncodedTextSizeMax(text.size())));
  std::ranges::copy(recipe, encoded.begin());
  QUIRE_ASSIGN_OR_RETURN(
      const size_t text_size,
      EncodeText(text, MutableByteView(encoded).subspan(recipe.size()),
                 *scratch.of_coder));
  return ByteView(encoded).first(recipe.size() + text_size);
}

absl::StatusOr<Payload> PayloadCodec::Encode(ByteView raw,
                                             MutableByteView stored,
                                             Scratch& scratch) const {
  QUIRE_CHECK(!raw.empty() && raw.size() <= kBlockSizeBytesMax);
  auto& mine = static_cast<PayloadScratch&>(scratch);
  std::optional<ByteView> inflated;
  if (inflated_text_size_max_ != 0) {
    QUIRE_ASSIGN_OR_RETURN(inflated, EncodeInflated(raw, mine));
  }
  const auto take_inflated = [&] {
    std::ranges::copy(*inflated, stored.begin());
    return Payload{.bytes = stored.first(inflated->size()), .has_recipe = true};
  };
  // Members hardly get smaller as they are.
  if (inflated.has_value() &&
      inflated->size() < mine.inflater->MemberBytes() / 4 * 3) {
    return take_inflated();
  }
  QUIRE_ASSIGN_OR_RETURN(const size_t plain_size,
                         EncodeText(raw, stored, *mine.of_coder));
  const Payload plain = plain_size < raw.size()
                            ? Payload{.bytes = stored.first(plain_size)}
                            : Payload{.bytes = raw, .is_raw = true};
  return inflated.has_value() && inflated->size() < plain.bytes.size()
             ? take_inflated()
             : plain;
}

absl::Status PayloadCodec::DecodeText(ByteView stored, size_t text_size,
                                      size_t offset, MutableByteView out,
                                      Scratch& of_coder) const {
  const size_t partition_size = FittedPartitionSize(text_size, partition_size_);
  const size_t count = PartitionCount(text_size, partition_size);
  if (count == 1) {
    absl::Status status =
        out.size() == text_size
            ? coder_->Decode(stored, /*is_last=*/true, text_size, out, of_coder)
            : coder_->DecodeRange(stored, /*is_last=*/true, text_size, offset,
                                  out, of_coder);
    // Other codecs put their names into errors.
    return info_.id == CodecId::kZlib ? InPayload(info_, stored, status)
                                      : status;
  }
  PartitionTable table;
  QUIRE_RETURN_IF_ERROR(InPayload(info_, stored, table.Parse(stored, count)));
  const size_t end = offset + out.size();
  for (size_t at = offset; at < end;) {
    const size_t index = at / partition_size;
    const size_t begin = index * partition_size;
    const size_t size = std::min(partition_size, text_size - begin);
    const size_t part_end = std::min(end, begin + size);
    const bool is_last = index + 1 == count;
    const MutableByteView to = out.subspan(at - offset);
    const absl::Status status =
        part_end - at == size
            ? coder_->Decode(table.Stored(index), is_last, size, to, of_coder)
            : coder_->DecodeRange(table.Stored(index), is_last, size,
                                  at - begin, to.first(part_end - at),
                                  of_coder);
    if (absl::IsDataLoss(status)) {
      return InPayload(info_, stored,
                       absl::DataLossError(absl::StrCat(
                           "partition ", index, ": ", status.message())));
    }
    QUIRE_RETURN_IF_ERROR(status);
    at = part_end;
  }
  return absl::OkStatus();
}

absl::Status PayloadCodec::DecodeWithRecipe(ByteView stored, size_t raw_size,
                                            std::span<const BlockPart> parts,
                                            PayloadScratch& scratch) const {
  Recipe& recipe = scratch.recipe;
  QUIRE_RETURN_IF_ERROR(TakeRecipe(stored, raw_size, recipe));
  const size_t partition_size =
      FittedPartitionSize(recipe.text_size_bytes, partition_size_);
  PartitionTable table;
  QUIRE_RETURN_IF_ERROR(table.Parse(
      stored, PartitionCount(recipe.text_size_bytes, partition_size)));
  if (!scratch.encoder.has_value()) {
    scratch.encoder.emplace();
  }
  CodedTextReader text(*coder_, table, recipe.text_size_bytes, partition_size,
                       scratch.text, *scratch.of_coder);
  // Copies the text between members: bytes [from, to) of the block, whose text
  // begins at `text_from`.
  const auto copy_gap = [&](size_t from, size_t to, size_t text_from) {
    return ForEachWanted(parts, from, to,
                         [&](size_t first, MutableByteView wanted) {
                           return text.Copy(text_from + (first - from), wanted);
                         });
  };
  size_t at = 0;
  size_t text_at = 0;
  for (const InflatedMember& member : recipe.members) {
    QUIRE_RETURN_IF_ERROR(copy_gap(at, member.offset, text_at));
    const auto size = static_cast<size_t>(member.recipe.member_size);
    at = member.offset + size;
    text_at = member.text_offset + static_cast<size_t>(member.recipe.text_size);
    // The member, in place if one part has all of it.
    MutableByteView made;
    const auto copy_member = [&](size_t first,
                                 MutableByteView wanted) -> absl::Status {
      if (made.empty()) {
        if (wanted.size() < size) {
          scratch.member.resize(size);
        }
        made = wanted.size() < size ? MutableByteView(scratch.member) : wanted;
        size_t next = member.text_offset;
        QUIRE_RETURN_IF_ERROR(RecreateMember(
            member,
            [&]() -> absl::StatusOr<ByteView> {
              QUIRE_ASSIGN_OR_RETURN(const ByteView piece,
                                     text.PieceAt(next, text_at - next));
              next += piece.size();
              return piece;
            },
            *scratch.encoder, made));
      }
      if (made.data() != wanted.data()) {
        std::ranges::copy(made.subspan(first - member.offset, wanted.size()),
                          wanted.begin());
      }
      return absl::OkStatus();
    };
    QUIRE_RETURN_IF_ERROR(ForEachWanted(parts, member.offset, at, copy_member));
  }
  return copy_gap(at, raw_size, text_at);
}

absl::Status PayloadCodec::Decode(const Payload& payload, MutableByteView raw,
                                  Scratch& scratch) const {
  return DecodeRange(payload, raw.size(), 0, raw, scratch);
}

absl::Status PayloadCodec::DecodeRange(const Payload& payload, size_t raw_size,
                                       size_t offset, MutableByteView out,
                                       Scratch& scratch) const {
  QUIRE_CHECK(raw_size > 0 && raw_size <= kBlockSizeBytesMax);
  QUIRE_CHECK(offset <= raw_size && out.size() <= raw_size - offset);
  if (payload.is_raw) {
    if (payload.bytes.size() != raw_size) {
      return absl::DataLossError(absl::StrCat("text has ", payload.bytes.size(),
                                              " bytes, expected ", raw_size));
    }
    std::ranges::copy(payload.bytes.subspan(offset, out.size()), out.begin());
    return absl::OkStatus();
  }
  auto& mine = static_cast<PayloadScratch&>(scratch);
  QUIRE_RETURN_IF_ERROR(CheckRecipe(payload));
  if (payload.has_recipe) {
    const BlockPart part = {.offset_in_block = static_cast<uint32_t>(offset),
                            .text = out};
    return InPayload(
        info_, payload.bytes,
        DecodeWithRecipe(payload.bytes, raw_size, std::span(&part, 1), mine));
  }
  return DecodeText(payload.bytes, raw_size, offset, out, *mine.of_coder);
}

absl::Status PayloadCodec::DecodeParts(const Payload& payload, size_t raw_size,
                                       std::span<const BlockPart> parts,
                                       Scratch& scratch) const {
  if (payload.is_raw || !payload.has_recipe) {
    for (const BlockPart& part : parts) {
      QUIRE_RETURN_IF_ERROR(DecodeRange(payload, raw_size, part.offset_in_block,
                                        part.text, scratch));
    }
    return absl::OkStatus();
  }
  QUIRE_CHECK(raw_size > 0 && raw_size <= kBlockSizeBytesMax);
  for (const BlockPart& part : parts) {
    QUIRE_CHECK(part.offset_in_block <= raw_size &&
                part.text.size() <= raw_size - part.offset_in_block);
  }
  QUIRE_RETURN_IF_ERROR(CheckRecipe(payload));
  return InPayload(info_, payload.bytes,
                   DecodeWithRecipe(payload.bytes, raw_size, parts,
                                    static_cast<PayloadScratch&>(scratch)));
}

absl::Status PayloadCodec::CheckRecipe(const Payload& payload) const {
  return payload.has_recipe && inflated_text_size_max_ == 0
             ? InPayload(info_, payload.bytes,
                         absl::DataLossError(
                             "has a recipe, and the archive says that none "
                             "has"))
             : absl::OkStatus();
}

absl::Status PayloadCodec::DecodeInflated(const Payload& payload,
                                          size_t raw_size,
                                          std::vector<uint8_t>& text,
                                          Recipe& recipe,
                                          Scratch& scratch) const {
  recipe.members.clear();
  recipe.text_size_bytes = raw_size;
  ByteView stored = payload.bytes;
  if (payload.has_recipe) {
    QUIRE_RETURN_IF_ERROR(CheckRecipe(payload));
    QUIRE_RETURN_IF_ERROR(
        InPayload(info_, payload.bytes, TakeRecipe(stored, raw_size, recipe)));
  }
  text.resize(recipe.text_size_bytes);
  return payload.is_raw
             ? DecodeRange(payload, raw_size, 0, text, scratch)
             : DecodeText(stored, text.size(), 0, text,
                          *static_cast<PayloadScratch&>(scratch).of_coder);
}

TextRange PayloadCodec::DecodedRange(size_t raw_size, TextRange range) const {
  const size_t partition_size = FittedPartitionSize(raw_size, partition_size_);
  const size_t begin = range.offset - range.offset % partition_size;
  const size_t count =
      range.size == 0
          ? 0
          : PartitionCount(range.offset + range.size - begin, partition_size);
  return {.offset = begin,
          .size = std::min(count * partition_size, raw_size - begin)};
}

std::unique_ptr<PayloadCodec> MakePayloadCodec(
    std::unique_ptr<const BlockCodec> codec, const CodecSpec& spec,
    size_t inflated_text_size_max) {
  const CodecInfo& info = codec->info();
  return std::make_unique<PayloadCodec>(
      info, MakeCodecPartitions(std::move(codec)), spec.partition_size_bytes,
      inflated_text_size_max);
}

absl::StatusOr<std::unique_ptr<PayloadCodec>> MakePayloadCodec(
    const CodecSpec& spec, std::shared_ptr<const CodecContext> context,
    CodecUse use, size_t inflated_text_size_max) {
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<BlockCodec> codec,
                         MakeBlockCodec(spec, std::move(context), use));
  const CodecInfo& info = codec->info();
  // Partitions of zlib together are one stream; a lone one is a block of zlib.
  std::unique_ptr<PartitionCoder> coder =
      info.id == CodecId::kZlib ? MakeDeflatePartitions(spec.level, use)
                                : MakeCodecPartitions(std::move(codec));
  return std::make_unique<PayloadCodec>(info, std::move(coder),
                                        spec.partition_size_bytes,
                                        inflated_text_size_max);
}

ByteView PartitionTail(CodecId codec, bool is_last) {
  // An empty block of fixed codes (RFC 1951, section 3.2.6). It begins with a
  // byte, because a flush ends with one.
  static constexpr std::array<uint8_t, 2> kFinalBlock = {3, 0};
  return codec == CodecId::kZlib && !is_last ? ByteView(kFinalBlock)
                                             : ByteView();
}

}  // namespace quire
