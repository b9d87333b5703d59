// SPDX-License-Identifier: Apache-2.0
#include <cassert>
#include <memory>

#include "codecs/block/deflate_decoder.h"
#include "codecs/block/deflate_range.h"
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
    const absl::Status status =
        DecodeDeflateRange(stored, /*dictionary=*/{}, raw_size, offset, out,
                           static_cast<ZlibScratch&>(scratch).decoder, scratch);
    return status.ok() ? status : Damaged(stored, status.message());
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
