// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cassert>
#include <memory>

#include "codecs/block/deflate_decoder.h"
#include "codecs/block/library_codecs.h"
#include "codecs/block/zlib_stream.h"
#include "codecs/codec_base.h"

namespace quire {
namespace {

class ZlibCodec final : public CodecBase {
 public:
  ZlibCodec(const CodecInfo& info, int level, CodecUse use)
      : CodecBase(info, use), level_(level) {}

  size_t StoredSizeMax(size_t raw_size) const override {
    return DeflateSizeMax(raw_size);
  }

  std::unique_ptr<Scratch> NewScratch() const override {
    return std::make_unique<ZlibScratch>(level_);
  }

  size_t MemoryBytes() const override { return sizeof(*this); }

  absl::Status Decode(ByteView stored, MutableByteView raw,
                      Scratch& scratch) const override {
    return DecodeRange(stored, raw.size(), 0, raw, scratch);
  }

  absl::Status DecodeRange(ByteView stored, size_t raw_size, size_t offset,
                           MutableByteView out,
                           Scratch& scratch) const override {
    assert(offset <= raw_size && out.size() <= raw_size - offset);
    const size_t end = offset + out.size();
    const MutableByteView text =
        offset == 0 ? out
                    : scratch.TextBuffer(end + DeflateDecoder::kRoomSlack);
    DeflateDecoder& decoder = static_cast<ZlibScratch&>(scratch).decoder;
    decoder.Start(stored, text);
    const auto size = decoder.DecodeTo(end);
    if (!size.ok()) {
      return Damaged(stored, size.status().message());
    }
    if (*size < end) {
      return WrongSize(stored, *size, raw_size);
    }
    if (end == raw_size) {
      const absl::Status status = decoder.Finish(raw_size);
      if (!status.ok()) {
        return Damaged(stored, status.message());
      }
    }
    if (offset != 0) {
      std::ranges::copy(text.subspan(offset, out.size()), out.begin());
    }
    return absl::OkStatus();
  }

 protected:
  absl::StatusOr<size_t> EncodeBlock(ByteView raw, MutableByteView stored,
                                     Scratch& scratch) const override {
    return static_cast<ZlibScratch&>(scratch).deflate.Compress(raw, stored);
  }

 private:
  struct ZlibScratch final : public Scratch {
    explicit ZlibScratch(int level) : deflate(level) {}

    DeflateStream deflate;
    DeflateDecoder decoder;
  };

  const int level_;
};

}  // namespace

std::unique_ptr<BlockCodec> MakeZlibCodec(const CodecInfo& info, int level,
                                          CodecUse use) {
  return std::make_unique<ZlibCodec>(info, level, use);
}

}  // namespace quire
