// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "absl/status/statusor.h"

#include "codecs/codec_factories.h"
#include "codecs/zstd/zstd_frame_codec.h"
#include "codecs/zstd/zstd_frame_writer.h"

namespace quire {
namespace {

class ZstdCodec final : public ZstdFrameCodec {
 public:
  ZstdCodec(const CodecInfo& info, int level, CodecUse use)
      : ZstdFrameCodec(info, use, /*context=*/nullptr), level_(level) {}

  std::unique_ptr<Scratch> NewScratch() const override {
    return std::make_unique<ZstdScratch>(level_);
  }

 protected:
  absl::StatusOr<size_t> EncodeBlock(ByteView raw, MutableByteView stored,
                                     Scratch& scratch) const override {
    return static_cast<ZstdScratch&>(scratch).writer.Write(raw, stored);
  }

 private:
  struct ZstdScratch final : public FrameScratch {
    explicit ZstdScratch(int level) : writer(level) {}

    ZstdFrameWriter writer;
  };

  const int level_;
};

}  // namespace

std::unique_ptr<BlockCodec> MakeZstdCodec(const CodecInfo& info, int level,
                                          CodecUse use) {
  return std::make_unique<ZstdCodec>(info, level, use);
}

}  // namespace quire
