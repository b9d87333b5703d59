// SPDX-License-Identifier: Apache-2.0
#include "codecs/zstd/zstd_frame_codec.h"

#include <zstd.h>

#include <utility>

#include "codecs/base/check.h"

namespace quire {

ZstdFrameCodec::ZstdFrameCodec(const CodecInfo& info, CodecUse use,
                               std::shared_ptr<const CodecContext> context)
    : CodecBase(info, use), context_(std::move(context)) {}

size_t ZstdFrameCodec::StoredSizeMax(size_t raw_size) const {
  return ZSTD_compressBound(raw_size);
}

std::unique_ptr<BlockCodec::Scratch> ZstdFrameCodec::NewScratch() const {
  return std::make_unique<FrameScratch>();
}

size_t ZstdFrameCodec::MemoryBytes() const {
  return sizeof(*this);
}

absl::Status ZstdFrameCodec::Decode(ByteView stored, MutableByteView raw,
                                    Scratch& scratch) const {
  ZstdFrameReader& reader = static_cast<FrameScratch&>(scratch).reader;
  return Explain(stored, reader.Decode(stored, dictionary(), raw));
}

absl::Status ZstdFrameCodec::DecodeRange(ByteView stored, size_t raw_size,
                                         size_t offset, MutableByteView out,
                                         Scratch& scratch) const {
  QUIRE_CHECK(offset <= raw_size && out.size() <= raw_size - offset);
  ZstdFrameReader& reader = static_cast<FrameScratch&>(scratch).reader;
  return Explain(
      stored, reader.DecodeRange(stored, dictionary(), raw_size, offset, out));
}

ByteView ZstdFrameCodec::dictionary() const {
  return context_ == nullptr ? ByteView() : AsBytes(context_->dictionary);
}

absl::Status ZstdFrameCodec::Explain(ByteView stored,
                                     const absl::Status& status) const {
  return absl::IsDataLoss(status) ? Damaged(stored, status.message()) : status;
}

}  // namespace quire
