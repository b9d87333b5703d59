// SPDX-License-Identifier: Apache-2.0
#include "codecs/inflate/inflating_codec.h"

#include <algorithm>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/check.h"
#include "codecs/base/status_macros.h"
#include "codecs/base/varint.h"
#include "codecs/codec_base.h"
#include "codecs/inflate/inflated_block.h"

namespace quire {
namespace {

// The number of members of a block without any.
constexpr size_t kPlainHeadSize = 1;

class InflatingCodec final : public CodecBase {
 public:
  InflatingCodec(const CodecInfo& info, std::unique_ptr<BlockCodec> text_codec,
                 CodecUse use, size_t member_text_size_max)
      : CodecBase(info, use),
        text_codec_(std::move(text_codec)),
        member_text_size_max_(member_text_size_max) {}

  size_t StoredSizeMax(size_t raw_size) const override {
    return kPlainHeadSize + text_codec_->StoredSizeMax(raw_size);
  }

  std::unique_ptr<Scratch> NewScratch() const override {
    auto scratch = std::make_unique<InflatingScratch>();
    scratch->of_text_codec = text_codec_->NewScratch();
    return scratch;
  }

  size_t MemoryBytes() const override {
    return sizeof(*this) + text_codec_->MemoryBytes();
  }

  absl::Status Decode(ByteView stored, MutableByteView raw,
                      Scratch& scratch) const override {
    auto& mine = static_cast<InflatingScratch&>(scratch);
    try {
      return Explain(stored, DecodeBlock(stored, raw, mine));
    } catch (const std::bad_alloc&) {
      return NoMemory();
    }
  }

  absl::Status DecodeRange(ByteView stored, size_t raw_size, size_t offset,
                           MutableByteView out,
                           Scratch& scratch) const override {
    QUIRE_CHECK(offset <= raw_size && out.size() <= raw_size - offset);
    if (stored.empty() || stored[0] != 0) {
      return CodecBase::DecodeRange(stored, raw_size, offset, out, scratch);
    }
    auto& mine = static_cast<InflatingScratch&>(scratch);
    return Explain(stored, text_codec_->DecodeRange(
                               stored.subspan(kPlainHeadSize), raw_size, offset,
                               out, *mine.of_text_codec));
  }

 protected:
  absl::StatusOr<size_t> EncodeBlock(ByteView raw, MutableByteView stored,
                                     Scratch& scratch) const override {
    auto& mine = static_cast<InflatingScratch&>(scratch);
    try {
      return EncodeEitherWay(raw, stored, mine);
    } catch (const std::bad_alloc&) {
      return NoMemory();
    }
  }

 private:
  struct InflatingScratch final : public Scratch {
    std::unique_ptr<Scratch> of_text_codec;
    // For decoding.
    InflatedHead head;
    std::vector<uint8_t> text;
    DeflateEncoder encoder;
    // For encoding.
    std::optional<BlockInflater> inflater;
    std::string encoded_head;
    std::vector<uint8_t> encoded_text;
  };

  absl::Status DecodeBlock(ByteView stored, MutableByteView raw,
                           InflatingScratch& mine) const {
    QUIRE_ASSIGN_OR_RETURN(const uint64_t member_count, TakeVarint(stored));
    if (member_count == 0) {
      return text_codec_->Decode(stored, raw, *mine.of_text_codec);
    }
    QUIRE_RETURN_IF_ERROR(
        TakeInflatedHead(stored, member_count, raw.size(), mine.head));
    QUIRE_ASSIGN_OR_RETURN(const std::vector<ByteView> parts,
                           TakeParts(stored, mine.head.text_size_bytes));
    size_t text_left = mine.head.text_size_bytes;
    size_t next = 0;
    return RecreateBlock(
        mine.head,
        [&]() -> absl::StatusOr<ByteView> {
          mine.text.resize(std::min(text_left, kInflatedPartSize));
          QUIRE_RETURN_IF_ERROR(text_codec_->Decode(parts[next++], mine.text,
                                                    *mine.of_text_codec));
          text_left -= mine.text.size();
          return ByteView(mine.text);
        },
        mine.encoder, raw);
  }

  static size_t PartCount(size_t text_size) {
    return (text_size + kInflatedPartSize - 1) / kInflatedPartSize;
  }

  // What follows the head, divided.
  static absl::StatusOr<std::vector<ByteView>> TakeParts(ByteView stored,
                                                         size_t text_size) {
    std::vector<uint64_t> sizes;
    for (size_t i = 1; i < PartCount(text_size); ++i) {
      QUIRE_ASSIGN_OR_RETURN(sizes.emplace_back(), TakeVarint(stored));
    }
    std::vector<ByteView> parts;
    for (const uint64_t size : sizes) {
      if (size > stored.size()) {
        return absl::DataLossError(
            absl::StrCat("a part of the inflated text has ", size,
                         " bytes, but only ", stored.size(), " are left"));
      }
      parts.push_back(stored.first(static_cast<size_t>(size)));
      stored = stored.subspan(static_cast<size_t>(size));
    }
    parts.push_back(stored);
    return parts;
  }

  absl::StatusOr<size_t> EncodeEitherWay(ByteView raw, MutableByteView stored,
                                         InflatingScratch& mine) const {
    stored[0] = 0;
    QUIRE_ASSIGN_OR_RETURN(
        const size_t as_is_size,
        text_codec_->Encode(raw, stored.subspan(kPlainHeadSize),
                            *mine.of_text_codec));
    const size_t plain_size = kPlainHeadSize + as_is_size;
    if (!mine.inflater.has_value()) {
      mine.inflater.emplace(member_text_size_max_);
    }
    if (!mine.inflater->Inflate(raw)) {
      return plain_size;
    }
    mine.encoded_head.clear();
    AppendInflatedHead(mine.inflater->head(), mine.encoded_head);
    QUIRE_ASSIGN_OR_RETURN(const size_t text_size, EncodeText(mine));
    const ByteView head = AsBytes(mine.encoded_head);
    if (head.size() + text_size >= plain_size) {
      return plain_size;
    }
    std::ranges::copy(head, stored.begin());
    std::copy_n(mine.encoded_text.begin(), text_size,
                stored.subspan(head.size()).begin());
    return head.size() + text_size;
  }

  // Encodes the inflated text, part by part, and appends the sizes of all parts
  // but the last to the head. Returns the size of all of them.
  absl::StatusOr<size_t> EncodeText(InflatingScratch& mine) const {
    ByteView text = mine.inflater->text();
    size_t encoded_size = 0;
    while (!text.empty()) {
      const ByteView part =
          text.first(std::min(text.size(), kInflatedPartSize));
      text = text.subspan(part.size());
      mine.encoded_text.resize(
          std::max(mine.encoded_text.size(),
                   encoded_size + text_codec_->StoredSizeMax(part.size())));
      QUIRE_ASSIGN_OR_RETURN(
          const size_t size,
          text_codec_->Encode(
              part, MutableByteView(mine.encoded_text).subspan(encoded_size),
              *mine.of_text_codec));
      encoded_size += size;
      if (!text.empty()) {
        AppendVarint(size, mine.encoded_head);
      }
    }
    return encoded_size;
  }

  absl::Status NoMemory() const {
    return absl::ResourceExhaustedError(
        absl::StrCat("not enough memory for a block of codec ", info().name));
  }

  absl::Status Explain(ByteView stored, const absl::Status& status) const {
    return absl::IsDataLoss(status) ? Damaged(stored, status.message())
                                    : status;
  }

  const std::unique_ptr<BlockCodec> text_codec_;
  const size_t member_text_size_max_;
};

}  // namespace

std::unique_ptr<BlockCodec> MakeInflatingCodec(
    const CodecInfo& info, std::unique_ptr<BlockCodec> text_codec, CodecUse use,
    size_t member_text_size_max) {
  return std::make_unique<InflatingCodec>(info, std::move(text_codec), use,
                                          member_text_size_max);
}

}  // namespace quire
