// SPDX-License-Identifier: Apache-2.0
#include <lz4.h>
#include <lz4hc.h>

#include <algorithm>
#include <cstdint>
#include <memory>

#include "absl/strings/str_cat.h"

#include "codecs/base/check.h"
#include "codecs/base/status_macros.h"
#include "codecs/codec_base.h"
#include "codecs/codec_factories.h"

namespace quire {
namespace {

const char* Chars(const uint8_t* bytes) {
  return reinterpret_cast<const char*>(bytes);
}

char* Chars(uint8_t* bytes) {
  return reinterpret_cast<char*>(bytes);
}

// One of the library's compressors and its setting.
struct Lz4Effort {
  bool is_high_compression = false;
  // The level of high compression, or the acceleration of the fast compressor.
  int value = 1;
};

class Lz4Codec final : public CodecBase {
 public:
  Lz4Codec(const CodecInfo& info, Lz4Effort effort, CodecUse use)
      : CodecBase(info, use), effort_(effort) {}

  size_t StoredSizeMax(size_t raw_size) const override {
    return static_cast<size_t>(LZ4_compressBound(static_cast<int>(raw_size)));
  }

  std::unique_ptr<Scratch> NewScratch() const override {
    return std::make_unique<Lz4Scratch>();
  }

  size_t MemoryBytes() const override { return sizeof(*this); }

  absl::Status Decode(ByteView stored, MutableByteView raw,
                      Scratch& /*scratch*/) const override {
    if (stored.size() > StoredSizeMax(kBlockSizeBytesMax)) {
      return Damaged(stored, "larger than any LZ4 block of this format");
    }
    const int size = LZ4_decompress_safe(
        Chars(stored.data()), Chars(raw.data()),
        static_cast<int>(stored.size()), static_cast<int>(raw.size()));
    return CheckDecoded(stored, size, raw.size());
  }

  absl::Status DecodeRange(ByteView stored, size_t raw_size, size_t offset,
                           MutableByteView out,
                           Scratch& scratch) const override {
    QUIRE_CHECK(offset <= raw_size && out.size() <= raw_size - offset);
    const size_t end = offset + out.size();
    if (end == raw_size) {
      return BlockCodec::DecodeRange(stored, raw_size, offset, out, scratch);
    }
    if (stored.size() > StoredSizeMax(kBlockSizeBytesMax)) {
      return Damaged(stored, "larger than any LZ4 block of this format");
    }
    const MutableByteView text = offset == 0 ? out : scratch.TextBuffer(end);
    // A last match at distance 0 leaves its bytes unchanged: they must not be
    // those of another text. LZ4_decompress_safe() writes them itself.
    std::ranges::fill(text, uint8_t{0});
    const int size = LZ4_decompress_safe_partial(
        Chars(stored.data()), Chars(text.data()),
        static_cast<int>(stored.size()), static_cast<int>(end),
        static_cast<int>(end));
    QUIRE_RETURN_IF_ERROR(CheckDecoded(stored, size, end));
    if (offset != 0) {
      std::ranges::copy(text.subspan(offset), out.begin());
    }
    return absl::OkStatus();
  }

 protected:
  absl::StatusOr<size_t> EncodeBlock(ByteView raw, MutableByteView stored,
                                     Scratch& scratch) const override {
    void* const state = static_cast<Lz4Scratch&>(scratch).StateFor(effort_);
    const char* const from = Chars(raw.data());
    char* const to = Chars(stored.data());
    const int raw_size = static_cast<int>(raw.size());
    const int stored_size_max = LZ4_compressBound(raw_size);
    const int size =
        effort_.is_high_compression
            ? LZ4_compress_HC_extStateHC(state, from, to, raw_size,
                                         stored_size_max, effort_.value)
            : LZ4_compress_fast_extState(state, from, to, raw_size,
                                         stored_size_max, effort_.value);
    if (size <= 0) {
      return absl::InternalError(
          absl::StrCat("LZ4 refused a block of ", raw.size(), " bytes"));
    }
    return static_cast<size_t>(size);
  }

 private:
  class Lz4Scratch final : public Scratch {
   public:
    void* StateFor(const Lz4Effort& effort) {
      if (state_ == nullptr) {
        const int size_bytes = effort.is_high_compression ? LZ4_sizeofStateHC()
                                                          : LZ4_sizeofState();
        state_ = std::make_unique_for_overwrite<uint64_t[]>(
            (static_cast<size_t>(size_bytes) + sizeof(uint64_t) - 1) /
            sizeof(uint64_t));
      }
      return state_.get();
    }

   private:
    // LZ4 requires the alignment of 64-bit words.
    std::unique_ptr<uint64_t[]> state_;
  };

  // `size` is what an LZ4 decoder returned.
  absl::Status CheckDecoded(ByteView stored, int size, size_t expected) const {
    if (size < 0) {
      return Damaged(stored, "not an LZ4 block");
    }
    if (static_cast<size_t>(size) != expected) {
      return WrongSize(stored, static_cast<size_t>(size), expected);
    }
    return absl::OkStatus();
  }

  const Lz4Effort effort_;
};

}  // namespace

std::unique_ptr<BlockCodec> MakeLz4Codec(const CodecInfo& info, int level,
                                         CodecUse use) {
  constexpr int kHighCompressionLevelMin = 3;
  const Lz4Effort effort = level < kHighCompressionLevelMin
                               ? Lz4Effort{false, std::max(-level, 1)}
                               : Lz4Effort{true, level};
  return std::make_unique<Lz4Codec>(info, effort, use);
}

}  // namespace quire
