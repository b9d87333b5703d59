// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_ZSTD_ZSTD_FRAME_CODEC_H_
#define QUIRE_CODECS_ZSTD_ZSTD_FRAME_CODEC_H_

#include <cstddef>
#include <memory>

#include "absl/status/status.h"

#include "codecs/base/bytes.h"
#include "codecs/block_codec.h"
#include "codecs/codec_base.h"
#include "codecs/zstd/zstd_frame.h"

namespace quire {

// Base of codecs that store each block as one zstd frame: everything except
// EncodeBlock(). The dictionary of the context, if any, is the frames' raw
// content (see ZstdFrameReader).
class ZstdFrameCodec : public CodecBase {
 public:
  // libzstd's bound; codecs with larger frames override it.
  size_t StoredSizeMax(size_t raw_size) const override;

  // Codecs with more memory derive their scratch from FrameScratch.
  std::unique_ptr<Scratch> NewScratch() const override;

  // Codecs that hold more memory override it.
  size_t MemoryBytes() const override;

  absl::Status Decode(ByteView stored, MutableByteView raw,
                      Scratch& scratch) const final;

  absl::Status DecodeRange(ByteView stored, size_t raw_size, size_t offset,
                           MutableByteView out, Scratch& scratch) const final;

 protected:
  struct FrameScratch : public Scratch {
    ZstdFrameReader reader;
  };

  // `context` is null for frames without a dictionary.
  ZstdFrameCodec(const CodecInfo& info, CodecUse use,
                 std::shared_ptr<const CodecContext> context);

  // Empty without a dictionary.
  ByteView dictionary() const;

 private:
  // Prefixes a reader's error with the codec's name.
  absl::Status Explain(ByteView stored, const absl::Status& status) const;

  const std::shared_ptr<const CodecContext> context_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_ZSTD_ZSTD_FRAME_CODEC_H_
