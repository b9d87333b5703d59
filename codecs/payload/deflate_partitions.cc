// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "codecs/base/status_macros.h"
#include "codecs/payload/partition_coder.h"
#include "codecs/zlib/deflate_codec.h"
#include "codecs/zlib/deflate_decoder.h"
#include "codecs/zlib/zlib_stream.h"

namespace quire {
namespace {

DeflateEnding EndingOf(bool is_last) {
  return is_last ? DeflateEnding::kFinalBlock : DeflateEnding::kFullFlush;
}

class DeflatePartitions final : public PartitionCoder {
 public:
  DeflatePartitions(int level, CodecUse use) : level_(level), use_(use) {}

  size_t StoredSizeMax(size_t raw_size) const override {
    return DeflateSizeMax(raw_size) + kFullFlushSizeMax;
  }

  std::unique_ptr<Scratch> NewScratch() const override {
    return std::make_unique<DeflateScratch>(level_);
  }

  size_t MemoryBytes() const override { return sizeof(*this); }

  absl::StatusOr<size_t> Encode(ByteView raw, bool is_last,
                                MutableByteView stored,
                                Scratch& scratch) const override {
    if (use_ == CodecUse::kDecode) {
      return absl::FailedPreconditionError(
          "this zlib codec was made for decoding only");
    }
    return static_cast<DeflateScratch&>(scratch).deflate.Compress(
        raw, stored, /*dictionary=*/{}, EndingOf(is_last));
  }

  absl::Status Decode(ByteView stored, bool is_last, size_t raw_size,
                      MutableByteView output, Scratch& scratch) const override {
    DeflateDecoder& decoder = static_cast<DeflateScratch&>(scratch).decoder;
    decoder.Start(stored, output, /*dictionary=*/{}, EndingOf(is_last));
    QUIRE_RETURN_IF_ERROR(decoder.DecodeTo(raw_size).status());
    return decoder.Finish(raw_size);
  }

  absl::Status DecodeRange(ByteView stored, bool is_last, size_t raw_size,
                           size_t offset, MutableByteView out,
                           Scratch& scratch) const override {
    return DecodeDeflateRange(stored, /*dictionary=*/{}, raw_size, offset, out,
                              static_cast<DeflateScratch&>(scratch).decoder,
                              scratch, EndingOf(is_last));
  }

 private:
  struct DeflateScratch final : public Scratch {
    explicit DeflateScratch(int level) : deflate(level) {}

    DeflateStream deflate;
    DeflateDecoder decoder;
  };

  const int level_;
  const CodecUse use_;
};

}  // namespace

std::unique_ptr<PartitionCoder> MakeDeflatePartitions(int level, CodecUse use) {
  return std::make_unique<DeflatePartitions>(level, use);
}

}  // namespace quire
