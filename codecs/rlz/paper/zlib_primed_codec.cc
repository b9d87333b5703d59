// SPDX-License-Identifier: Apache-2.0
//
//   window       varint: where in the dictionary the text begins; it has 32768
//                bytes, or ends with the dictionary
//   text         raw DEFLATE stream, whose matches may reach into the window
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "codecs/base/varint.h"
#include "codecs/codec_factories.h"
#include "codecs/rlz/paper/window_chooser.h"
#include "codecs/zlib/deflate_codec.h"
#include "codecs/zlib/zlib_stream.h"

namespace quire {
namespace {

class ZlibPrimedCodec final : public DeflateCodec {
 public:
  ZlibPrimedCodec(const CodecInfo& info, int level,
                  std::shared_ptr<const CodecContext> context, CodecUse use)
      : DeflateCodec(info, use), level_(level), context_(std::move(context)) {
    if (use != CodecUse::kDecode) {
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

 protected:
  absl::StatusOr<PrimedStream> FindStream(ByteView stored) const override {
    QUIRE_ASSIGN_OR_RETURN(const uint64_t window, TakeVarint(stored));
    if (window > context_->dictionary.size()) {
      return absl::DataLossError(
          absl::StrCat("window at ", window, " of a dictionary of ",
                       context_->dictionary.size(), " bytes"));
    }
    return PrimedStream{.stream = stored, .dictionary = WindowAt(window)};
  }

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
  struct PrimedScratch final : public DeflateScratch {
    using DeflateScratch::DeflateScratch;

    WindowChooser::Memory chooser_memory;
  };

  // REQUIRES: position <= the dictionary's size.
  ByteView WindowAt(size_t position) const {
    const ByteView rest = AsBytes(context_->dictionary).subspan(position);
    return rest.first(std::min(rest.size(), WindowChooser::kWindowSize));
  }

  const int level_;
  const std::shared_ptr<const CodecContext> context_;
  // Unset for decoding.
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
