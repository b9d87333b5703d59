// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <utility>

#include "codecs/payload/partition_coder.h"

namespace quire {
namespace {

class CodecPartitions final : public PartitionCoder {
 public:
  explicit CodecPartitions(std::unique_ptr<const BlockCodec> codec)
      : codec_(std::move(codec)) {}

  size_t StoredSizeMax(size_t raw_size) const override {
    return codec_->StoredSizeMax(raw_size);
  }

  std::unique_ptr<Scratch> NewScratch() const override {
    return codec_->NewScratch();
  }

  size_t MemoryBytes() const override {
    return sizeof(*this) + codec_->MemoryBytes();
  }

  absl::StatusOr<size_t> Encode(ByteView raw, bool /*is_last*/,
                                MutableByteView stored,
                                Scratch& scratch) const override {
    return codec_->Encode(raw, stored, scratch);
  }

  absl::Status Decode(ByteView stored, bool /*is_last*/, size_t raw_size,
                      MutableByteView output, Scratch& scratch) const override {
    return codec_->Decode(stored, output.first(raw_size), scratch);
  }

  absl::Status DecodeRange(ByteView stored, bool /*is_last*/, size_t raw_size,
                           size_t offset, MutableByteView out,
                           Scratch& scratch) const override {
    return codec_->DecodeRange(stored, raw_size, offset, out, scratch);
  }

 private:
  const std::unique_ptr<const BlockCodec> codec_;
};

}  // namespace

std::unique_ptr<PartitionCoder> MakeCodecPartitions(
    std::unique_ptr<const BlockCodec> codec) {
  return std::make_unique<CodecPartitions>(std::move(codec));
}

}  // namespace quire
