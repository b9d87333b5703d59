// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "codecs/codec_factories.h"
#include "codecs/zlib/deflate_codec.h"
#include "codecs/zlib/zlib_stream.h"

namespace quire {
namespace {

class ZlibCodec final : public DeflateCodec {
 public:
  ZlibCodec(const CodecInfo& info, int level, CodecUse use)
      : DeflateCodec(info, use), level_(level) {}

  size_t StoredSizeMax(size_t raw_size) const override {
    return DeflateSizeMax(raw_size);
  }

  std::unique_ptr<Scratch> NewScratch() const override {
    return std::make_unique<DeflateScratch>(level_);
  }

  size_t MemoryBytes() const override { return sizeof(*this); }

 protected:
  absl::StatusOr<PrimedStream> FindStream(ByteView stored) const override {
    return PrimedStream{.stream = stored, .dictionary = {}};
  }

  absl::StatusOr<size_t> EncodeBlock(ByteView raw, MutableByteView stored,
                                     Scratch& scratch) const override {
    return static_cast<DeflateScratch&>(scratch).deflate.Compress(raw, stored);
  }

 private:
  const int level_;
};

}  // namespace

std::unique_ptr<BlockCodec> MakeZlibCodec(const CodecInfo& info, int level,
                                          CodecUse use) {
  return std::make_unique<ZlibCodec>(info, level, use);
}

}  // namespace quire
