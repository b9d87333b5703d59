// SPDX-License-Identifier: Apache-2.0
#define ZSTD_STATIC_LINKING_ONLY
#include "testing/codecs/zstd_test_frames.h"

#include <zstd.h>

#include <memory>
#include <utility>

#include "codecs/base/check.h"

namespace quire {
namespace {

struct FreeZstd {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }

  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

size_t Require(size_t result) {
  QUIRE_CHECK(!ZSTD_isError(result));
  return result;
}

}  // namespace

std::string MakeZstdFrame(ByteView text, ByteView dictionary,
                          const ZstdFrameOptions& options) {
  const std::unique_ptr<ZSTD_CCtx, FreeZstd> context(ZSTD_createCCtx());
  for (const auto& [parameter, value] :
       {std::pair{ZSTD_c_compressionLevel, options.level},
        std::pair{ZSTD_c_contentSizeFlag, options.has_size ? 1 : 0},
        std::pair{ZSTD_c_checksumFlag, options.has_checksum ? 1 : 0},
        std::pair{ZSTD_c_targetCBlockSize, options.inner_size}}) {
    Require(ZSTD_CCtx_setParameter(context.get(), parameter, value));
  }
  Require(ZSTD_CCtx_refPrefix_advanced(context.get(), dictionary.data(),
                                       dictionary.size(), ZSTD_dct_rawContent));
  std::string frame(2 * ZSTD_compressBound(text.size()), '\0');
  frame.resize(Require(ZSTD_compress2(context.get(), frame.data(), frame.size(),
                                      text.data(), text.size())));
  return frame;
}

bool LibraryDecodes(ByteView stored, ByteView dictionary, MutableByteView raw) {
  static ZSTD_DCtx* const context = ZSTD_createDCtx();
  Require(ZSTD_DCtx_refPrefix_advanced(context, dictionary.data(),
                                       dictionary.size(), ZSTD_dct_rawContent));
  const size_t frame_size =
      ZSTD_findFrameCompressedSize(stored.data(), stored.size());
  return frame_size == stored.size() &&
         ZSTD_decompressDCtx(context, raw.data(), raw.size(), stored.data(),
                             stored.size()) == raw.size();
}

}  // namespace quire
