// SPDX-License-Identifier: Apache-2.0
#include <zstd.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "codecs/block/library_codecs.h"
#include "codecs/block/zstd_frame_codec.h"

namespace quire {
namespace {

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};

class ZstdCodec final : public ZstdFrameCodec {
 public:
  ZstdCodec(const CodecInfo& info, int level, CodecUse use)
      : ZstdFrameCodec(info, use, /*context=*/nullptr), level_(level) {}

  std::unique_ptr<Scratch> NewScratch() const override {
    return std::make_unique<ZstdScratch>();
  }

 protected:
  absl::StatusOr<size_t> EncodeBlock(ByteView raw, MutableByteView stored,
                                     Scratch& scratch) const override {
    QUIRE_ASSIGN_OR_RETURN(ZSTD_CCtx* const context, Compressor(scratch));
    const size_t size = ZSTD_compress2(context, stored.data(), stored.size(),
                                       raw.data(), raw.size());
    if (ZSTD_isError(size)) {
      return absl::InternalError(
          absl::StrCat("zstd refused a block of ", raw.size(),
                       " bytes: ", ZSTD_getErrorName(size)));
    }
    return size;
  }

 private:
  struct ZstdScratch final : public FrameScratch {
    std::unique_ptr<ZSTD_CCtx, FreeContext> compressor;
  };

  absl::StatusOr<ZSTD_CCtx*> Compressor(Scratch& scratch) const {
    auto& context = static_cast<ZstdScratch&>(scratch).compressor;
    if (context == nullptr) {
      context.reset(ZSTD_createCCtx());
      if (context == nullptr) {
        return absl::ResourceExhaustedError(
            "not enough memory for zstd's context");
      }
      for (const auto& [parameter, value] :
           {std::pair{ZSTD_c_compressionLevel, level_},
            std::pair{ZSTD_c_contentSizeFlag, 0},
            std::pair{ZSTD_c_checksumFlag, 0},
            std::pair{ZSTD_c_dictIDFlag, 0}}) {
        ZSTD_CCtx_setParameter(context.get(), parameter, value);
      }
    }
    return context.get();
  }

  const int level_;
};

}  // namespace

std::unique_ptr<BlockCodec> MakeZstdCodec(const CodecInfo& info, int level,
                                          CodecUse use) {
  return std::make_unique<ZstdCodec>(info, level, use);
}

}  // namespace quire
