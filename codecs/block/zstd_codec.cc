// SPDX-License-Identifier: Apache-2.0
//
// Uses zstd's block-by-block decompression, which is in the experimental
// section of its header: hence the static library.
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/endian.h"
#include "codecs/base/status_macros.h"
#include "codecs/block/library_codecs.h"
#include "codecs/codec_base.h"

namespace quire {
namespace {

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }

  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

absl::Status NoMemory() {
  return absl::ResourceExhaustedError("not enough memory for zstd's context");
}

class ZstdCodec final : public CodecBase {
 public:
  ZstdCodec(const CodecInfo& info, int level, CodecUse use)
      : CodecBase(info, use), level_(level) {}

  size_t StoredSizeMax(size_t raw_size) const override {
    return ZSTD_compressBound(raw_size);
  }

  std::unique_ptr<Scratch> NewScratch() const override {
    return std::make_unique<ZstdScratch>();
  }

  size_t MemoryBytes() const override { return sizeof(*this); }

  absl::Status Decode(ByteView stored, MutableByteView raw,
                      Scratch& scratch) const override {
    QUIRE_ASSIGN_OR_RETURN(ZSTD_DCtx* const context, Decompressor(scratch));
    QUIRE_RETURN_IF_ERROR(CheckFrame(stored));
    const size_t size = ZSTD_decompressDCtx(context, raw.data(), raw.size(),
                                            stored.data(), stored.size());
    if (ZSTD_isError(size)) {
      return Damaged(stored, ZSTD_getErrorName(size));
    }
    if (size != raw.size()) {
      return WrongSize(stored, size, raw.size());
    }
    return absl::OkStatus();
  }

  absl::Status DecodeRange(ByteView stored, size_t raw_size, size_t offset,
                           MutableByteView out,
                           Scratch& scratch) const override {
    assert(offset <= raw_size && out.size() <= raw_size - offset);
    const size_t end = offset + out.size();
    // Up to this size a frame is one inner block as a rule: nowhere to stop.
    if (end == raw_size || raw_size <= ZSTD_BLOCKSIZE_MAX) {
      return BlockCodec::DecodeRange(stored, raw_size, offset, out, scratch);
    }
    QUIRE_ASSIGN_OR_RETURN(ZSTD_DCtx* const context, Decompressor(scratch));
    QUIRE_RETURN_IF_ERROR(CheckFrame(stored));
    const MutableByteView text = scratch.TextBuffer(raw_size);
    QUIRE_RETURN_IF_ERROR(DecodeUpTo(end, stored, text, context));
    std::ranges::copy(text.subspan(offset, out.size()), out.begin());
    return absl::OkStatus();
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
  struct ZstdScratch final : public Scratch {
    std::unique_ptr<ZSTD_CCtx, FreeContext> compressor;
    std::unique_ptr<ZSTD_DCtx, FreeContext> decompressor;
  };

  absl::StatusOr<ZSTD_CCtx*> Compressor(Scratch& scratch) const {
    auto& context = static_cast<ZstdScratch&>(scratch).compressor;
    if (context == nullptr) {
      context.reset(ZSTD_createCCtx());
      if (context == nullptr) {
        return NoMemory();
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

  static absl::StatusOr<ZSTD_DCtx*> Decompressor(Scratch& scratch) {
    auto& context = static_cast<ZstdScratch&>(scratch).decompressor;
    if (context == nullptr) {
      context.reset(ZSTD_createDCtx());
      if (context == nullptr) {
        return NoMemory();
      }
    }
    return context.get();
  }

  // The library also takes several frames, frames to be skipped and those of
  // zstd's versions before 1.0; a block is one frame of the standard format.
  absl::Status CheckFrame(ByteView stored) const {
    if (stored.size() < sizeof(uint32_t) ||
        LoadLittleEndian<uint32_t>(stored.data()) != ZSTD_MAGICNUMBER) {
      return Damaged(stored, "not a zstd frame");
    }
    const size_t size =
        ZSTD_findFrameCompressedSize(stored.data(), stored.size());
    if (ZSTD_isError(size)) {
      return Damaged(stored, ZSTD_getErrorName(size));
    }
    if (size != stored.size()) {
      return Damaged(stored, absl::StrCat("its zstd frame ends after ", size));
    }
    return absl::OkStatus();
  }

  // Decodes inner blocks until the first `end` bytes of `text` are there.
  absl::Status DecodeUpTo(size_t end, ByteView stored, MutableByteView text,
                          ZSTD_DCtx* context) const {
    ZSTD_decompressBegin(context);
    size_t done = 0;
    while (done < end) {
      const size_t take = ZSTD_nextSrcSizeToDecompress(context);
      if (take == 0) {
        return WrongSize(stored, done, text.size());
      }
      if (take > stored.size()) {
        return Damaged(stored, "its zstd frame is cut short");
      }
      const size_t size = ZSTD_decompressContinue(
          context, text.data() + done, text.size() - done, stored.data(), take);
      if (ZSTD_isError(size)) {
        return Damaged(stored, ZSTD_getErrorName(size));
      }
      done += size;
      stored = stored.subspan(take);
    }
    return absl::OkStatus();
  }

  const int level_;
};

}  // namespace

std::unique_ptr<BlockCodec> MakeZstdCodec(const CodecInfo& info, int level,
                                          CodecUse use) {
  return std::make_unique<ZstdCodec>(info, level, use);
}

}  // namespace quire
