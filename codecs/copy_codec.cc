// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>

#include "codecs/base/check.h"
#include "codecs/codec_base.h"
#include "codecs/codec_factories.h"

namespace quire {
namespace {

class CopyCodec final : public CodecBase {
 public:
  CopyCodec(const CodecInfo& info, CodecUse use) : CodecBase(info, use) {}

  size_t StoredSizeMax(size_t raw_size) const override { return raw_size; }

  std::unique_ptr<Scratch> NewScratch() const override {
    return std::make_unique<Scratch>();
  }

  size_t MemoryBytes() const override { return sizeof(*this); }

  absl::Status Decode(ByteView stored, MutableByteView raw,
                      Scratch& scratch) const override {
    return DecodeRange(stored, raw.size(), 0, raw, scratch);
  }

  absl::Status DecodeRange(ByteView stored, size_t raw_size, size_t offset,
                           MutableByteView out,
                           Scratch& /*scratch*/) const override {
    QUIRE_CHECK(offset <= raw_size && out.size() <= raw_size - offset);
    if (stored.size() != raw_size) {
      return WrongSize(stored, stored.size(), raw_size);
    }
    std::ranges::copy(stored.subspan(offset, out.size()), out.begin());
    return absl::OkStatus();
  }

 protected:
  absl::StatusOr<size_t> EncodeBlock(ByteView raw, MutableByteView stored,
                                     Scratch& /*scratch*/) const override {
    std::ranges::copy(raw, stored.begin());
    return raw.size();
  }
};

}  // namespace

std::unique_ptr<BlockCodec> MakeCopyCodec(const CodecInfo& info, CodecUse use) {
  return std::make_unique<CopyCodec>(info, use);
}

}  // namespace quire
