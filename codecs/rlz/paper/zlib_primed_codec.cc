// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/paper/zlib_primed_codec.h"

#include <algorithm>
#include <cassert>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "codecs/base/varint.h"
#include "codecs/block/deflate_decoder.h"
#include "codecs/block/deflate_range.h"
#include "codecs/block/zlib_stream.h"
#include "codecs/codec_base.h"
#include "codecs/rlz/paper/window_chooser.h"

namespace quire {
namespace {

class ZlibPrimedCodec final : public CodecBase {
 public:
  ZlibPrimedCodec(const CodecInfo& info, int level,
                  std::shared_ptr<const CodecContext> context, CodecUse use)
      : CodecBase(info, use), level_(level), context_(std::move(context)) {
    if (use == CodecUse::kEncodeAndDecode) {
      chooser_.emplace(AsBytes(context_->dictionary));
    }
  }

  size_t StoredSizeMax(size_t raw_size) const override {
    return DeflateSizeMax(raw_size) + kVarintSizeBytesMax;
  }

  std::unique_ptr<Scratch> NewScratch() const override {
    return std::make_unique<PrimedScratch>(level_);
  }

  size_t MemoryBytes() const override {
    return sizeof(*this) + (chooser_ ? chooser_->MemoryBytes() : 0);
  }

  absl::Status Decode(ByteView stored, MutableByteView raw,
                      Scratch& scratch) const override {
    return DecodeRange(stored, raw.size(), 0, raw, scratch);
  }

  absl::Status DecodeRange(ByteView stored, size_t raw_size, size_t offset,
                           MutableByteView out,
                           Scratch& scratch) const override {
    assert(offset <= raw_size && out.size() <= raw_size - offset);
    ByteView stream = stored;
    const auto window = TakeVarint(stream);
    if (!window.ok()) {
      return Damaged(stored, window.status().message());
    }
    if (*window > context_->dictionary.size()) {
      return Damaged(stored,
                     absl::StrCat("window at ", *window, " of a dictionary of ",
                                  context_->dictionary.size(), " bytes"));
    }
    const absl::Status status = DecodeDeflateRange(
        stream, WindowAt(*window), raw_size, offset, out,
        static_cast<PrimedScratch&>(scratch).decoder, scratch);
    return status.ok() ? status : Damaged(stored, status.message());
  }

 protected:
  absl::StatusOr<size_t> EncodeBlock(ByteView raw, MutableByteView stored,
                                     Scratch& scratch) const override {
    auto& own = static_cast<PrimedScratch&>(scratch);
    const size_t window = chooser_->Choose(raw, own.chooser_memory);
    std::string header;
    AppendVarint(window, header);
    std::ranges::copy(AsBytes(header), stored.begin());
    QUIRE_ASSIGN_OR_RETURN(
        const size_t size,
        own.deflate.Compress(raw, stored.subspan(header.size()),
                             WindowAt(window)));
    return header.size() + size;
  }

 private:
  struct PrimedScratch final : public Scratch {
    explicit PrimedScratch(int level) : deflate(level) {}

    DeflateStream deflate;
    DeflateDecoder decoder;
    WindowChooser::Memory chooser_memory;
  };

  // REQUIRES: position <= the dictionary's size.
  ByteView WindowAt(size_t position) const {
    const ByteView rest = AsBytes(context_->dictionary).subspan(position);
    return rest.first(std::min(rest.size(), WindowChooser::kWindowSize));
  }

  const int level_;
  const std::shared_ptr<const CodecContext> context_;
  // None when made for decoding.
  std::optional<WindowChooser> chooser_;
};

}  // namespace

std::unique_ptr<BlockCodec> MakeZlibPrimedCodec(
    const CodecInfo& info, int level,
    std::shared_ptr<const CodecContext> context, CodecUse use) {
  return std::make_unique<ZlibPrimedCodec>(info, level, std::move(context),
                                           use);
}

}  // namespace quire
