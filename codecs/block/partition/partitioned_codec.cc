// SPDX-License-Identifier: Apache-2.0
#include "codecs/block/partition/partitioned_codec.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/check.h"
#include "codecs/base/status_macros.h"
#include "codecs/block/partition/partition_table.h"
#include "codecs/codec_base.h"

namespace quire {
namespace {

class PartitionedCodec final : public CodecBase {
 public:
  PartitionedCodec(const CodecInfo& info, uint32_t partition_size,
                   std::unique_ptr<const PartitionCoder> coder, CodecUse use)
      : CodecBase(info, use),
        partition_size_(partition_size),
        coder_(std::move(coder)) {}

  size_t StoredSizeMax(size_t raw_size) const override {
    const size_t last_size = raw_size % partition_size_;
    return PartitionHeadSizeMax(raw_size, partition_size_) +
           raw_size / partition_size_ * coder_->StoredSizeMax(partition_size_) +
           (last_size == 0 ? 0 : coder_->StoredSizeMax(last_size));
  }

  std::unique_ptr<Scratch> NewScratch() const override {
    return coder_->NewScratch();
  }

  size_t MemoryBytes() const override {
    return sizeof(*this) + coder_->MemoryBytes();
  }

  absl::Status Decode(ByteView stored, MutableByteView raw,
                      Scratch& scratch) const override {
    return DecodeRange(stored, raw.size(), 0, raw, scratch);
  }

  absl::Status DecodeRange(ByteView stored, size_t raw_size, size_t offset,
                           MutableByteView out,
                           Scratch& scratch) const override {
    QUIRE_CHECK(offset <= raw_size && out.size() <= raw_size - offset);
    PartitionTable table;
    if (absl::Status status = table.Parse(stored, raw_size, partition_size_);
        !status.ok()) {
      return Damaged(stored, status.message());
    }
    const size_t end = offset + out.size();
    for (size_t at = offset; at < end;) {
      const size_t index = at / partition_size_;
      const size_t begin = index * partition_size_;
      const size_t size = std::min<size_t>(partition_size_, raw_size - begin);
      const size_t part_end = std::min(end, begin + size);
      const bool is_last = index + 1 == table.count();
      const MutableByteView to = out.subspan(at - offset);
      const absl::Status status =
          part_end - at == size
              ? coder_->Decode(table.Stored(index), is_last, size, to, scratch)
              : coder_->DecodeRange(table.Stored(index), is_last, size,
                                    at - begin, to.first(part_end - at),
                                    scratch);
      if (!status.ok()) {
        return Explain(stored, index, status);
      }
      at = part_end;
    }
    return absl::OkStatus();
  }

  TextRange DecodedRange(size_t raw_size, TextRange range) const override {
    const size_t begin = range.offset - range.offset % partition_size_;
    const size_t count = range.size == 0
                             ? 0
                             : PartitionCount(range.offset + range.size - begin,
                                              partition_size_);
    return {.offset = begin,
            .size = std::min(count * partition_size_, raw_size - begin)};
  }

 protected:
  absl::StatusOr<size_t> EncodeBlock(ByteView raw, MutableByteView stored,
                                     Scratch& scratch) const override {
    const size_t count = PartitionCount(raw.size(), partition_size_);
    std::array<uint32_t, kBlockSizeBytesMax / kPartitionSizeBytesMin> sizes;
    // The head's size is known when all partitions are there.
    const size_t head_size_max =
        PartitionHeadSizeMax(raw.size(), partition_size_);
    size_t end = head_size_max;
    for (size_t i = 0; i < count; ++i) {
      const ByteView text = raw.subspan(i * partition_size_);
      QUIRE_ASSIGN_OR_RETURN(
          const size_t size,
          coder_->Encode(text.first(std::min<size_t>(text.size(),  //
                                                     partition_size_)),
                         i + 1 == count, stored.subspan(end), scratch));
      sizes[i] = static_cast<uint32_t>(size);
      end += size;
    }
    const size_t head_size = WritePartitionHead(
        partition_size_, std::span(sizes).first(count), stored);
    std::memmove(stored.data() + head_size, stored.data() + head_size_max,
                 end - head_size_max);
    return head_size + (end - head_size_max);
  }

 private:
  absl::Status Explain(ByteView stored, size_t index,
                       const absl::Status& status) const {
    return absl::IsDataLoss(status)
               ? Damaged(stored, absl::StrCat("partition ", index, ": ",
                                              std::string(status.message())))
               : status;
  }

  const uint32_t partition_size_;
  const std::unique_ptr<const PartitionCoder> coder_;
};

}  // namespace

std::unique_ptr<BlockCodec> MakePartitionedCodec(
    const CodecInfo& info, uint32_t partition_size,
    std::unique_ptr<const PartitionCoder> coder, CodecUse use) {
  QUIRE_CHECK(IsPartitionSize(partition_size));
  return std::make_unique<PartitionedCodec>(info, partition_size,
                                            std::move(coder), use);
}

ByteView PartitionTail(const CodecInfo& info, bool is_last) {
  // An empty block by fixed codes (RFC 1951, section 3.2.6). It begins with a
  // byte, for a flush ends with one.
  static constexpr std::array<uint8_t, 2> kFinalBlock = {3, 0};
  return info.id == CodecId::kZlibPex && !is_last ? ByteView(kFinalBlock)
                                                  : ByteView();
}

}  // namespace quire
