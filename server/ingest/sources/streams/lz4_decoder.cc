// SPDX-License-Identifier: GPL-3.0-or-later
#include <lz4.h>
#include <lz4frame.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "codecs/base/endian.h"
#include "server/ingest/sources/streams/member_decoders.h"
#include "server/ingest/sources/streams/zstd_dictionary.h"

namespace quire {
namespace {

constexpr uint32_t kLz4Magic = 0x184D2204;
constexpr uint32_t kLz4LegacyMagic = 0x184C2102;
constexpr size_t kLz4MagicSizeBytes = 4;
// Text of a block of the legacy format, at most, and its compressed size.
constexpr size_t kLegacyBlockSizeBytes = size_t{8} << 20;
constexpr size_t kLegacyStoredSizeBytesMax =
    LZ4_COMPRESSBOUND(kLegacyBlockSizeBytes);

// True if `bytes`, of the size of a magic number, are one.
bool IsLz4Magic(const uint8_t* bytes) {
  const auto magic = LoadLittleEndian<uint32_t>(bytes);
  return magic == kLz4Magic || magic == kLz4LegacyMagic ||
         IsSkippableFrame(ByteView(bytes, kLz4MagicSizeBytes));
}

class Lz4Decoder final : public MemberDecoder {
 public:
  Lz4Decoder() = default;

  ~Lz4Decoder() override { LZ4F_freeDecompressionContext(context_); }

  Lz4Decoder(const Lz4Decoder&) = delete;
  Lz4Decoder& operator=(const Lz4Decoder&) = delete;

  // False without memory.
  bool Init() {
    return LZ4F_isError(
               LZ4F_createDecompressionContext(&context_, LZ4F_VERSION)) == 0;
  }

  absl::string_view member_name() const override { return "lz4 frame"; }

  MemberPadding padding() const override { return MemberPadding::kAtEnd; }

  size_t MagicSizeBytes() const override { return kLz4MagicSizeBytes; }

  // A file of fewer bytes ends inside the magic number.
  bool HasMagic(ByteView bytes) const override {
    return bytes.size() < kLz4MagicSizeBytes || IsLz4Magic(bytes.data());
  }

  bool MayEndHere() const override {
    return is_legacy_ && prefix_size_ == 0 && stored_.empty() &&
           text_begin_ == text_size_;
  }

  void Reset() override {
    LZ4F_resetDecompressionContext(context_);
    has_magic_ = false;
    is_legacy_ = false;
    wanted_bytes_ = kLz4MagicSizeBytes;
    prefix_size_ = 0;
    text_begin_ = 0;
    text_size_ = 0;
    stored_.clear();
  }

  Step Decode(ByteView in, MutableByteView out) override {
    Step step;
    if (!has_magic_) {
      step.consumed_bytes = TakePrefix(in);
      if (prefix_size_ < kLz4MagicSizeBytes) {
        return step;
      }
      StartFrame(step);
      if (!step.error.empty()) {
        return step;
      }
    }
    in = in.subspan(step.consumed_bytes);
    if (is_legacy_) {
      DecodeLegacy(in, out, step);
    } else {
      DecodeFrame(in, out, step);
    }
    return step;
  }

 private:
  // Fills prefix_; returns the number of bytes taken.
  size_t TakePrefix(ByteView in) {
    const size_t size = std::min(in.size(), prefix_.size() - prefix_size_);
    std::copy_n(in.begin(), size, prefix_.data() + prefix_size_);
    prefix_size_ += size;
    return size;
  }

  // prefix_ is a magic number.
  void StartFrame(Step& step) {
    prefix_size_ = 0;
    has_magic_ = true;
    is_legacy_ = LoadLittleEndian<uint32_t>(prefix_.data()) == kLz4LegacyMagic;
    if (!is_legacy_) {
      Step start;
      DecodeFrame(prefix_, {}, start);
      step.error = start.error;
    }
  }

  void DecodeFrame(ByteView in, MutableByteView out, Step& step) {
    // No more than a block, as libzstd (zstd_stream.cc).
    size_t in_size = std::min(in.size(), std::max<size_t>(wanted_bytes_, 1));
    size_t out_size = out.size();
    const size_t result = LZ4F_decompress(context_, out.data(), &out_size,
                                          in.data(), &in_size, nullptr);
    step.consumed_bytes += in_size;
    step.produced_bytes = out_size;
    if (LZ4F_isError(result) != 0) {
      step.error =
          absl::StrCat("damaged lz4 data (", LZ4F_getErrorName(result), ")");
    } else {
      step.has_ended = result == 0;
      wanted_bytes_ = result;
    }
  }

  void DecodeLegacy(ByteView in, MutableByteView out, Step& step) {
    while (text_begin_ == text_size_) {
      if (stored_.empty()) {
        const size_t taken = TakePrefix(in);
        step.consumed_bytes += taken;
        in = in.subspan(taken);
        if (prefix_size_ < prefix_.size()) {
          return;
        }
        const auto size = LoadLittleEndian<uint32_t>(prefix_.data());
        if (IsLz4Magic(prefix_.data())) {
          // Another frame follows.
          StartFrame(step);
          if (!is_legacy_) {
            return;
          }
          continue;
        }
        prefix_size_ = 0;
        if (size == 0 || size > kLegacyStoredSizeBytesMax) {
          step.error = absl::StrCat("damaged lz4 data (a block of ", size,
                                    " bytes, which must have 1 to ",
                                    kLegacyStoredSizeBytesMax, ")");
          return;
        }
        stored_.resize(size);
        stored_size_ = 0;
      }
      const size_t taken = std::min(in.size(), stored_.size() - stored_size_);
      std::copy_n(in.begin(), taken, stored_.data() + stored_size_);
      stored_size_ += taken;
      step.consumed_bytes += taken;
      in = in.subspan(taken);
      if (stored_size_ < stored_.size()) {
        return;
      }
      if (!DecodeBlock()) {
        step.error = "damaged lz4 data (a block cannot be decoded)";
        return;
      }
    }
    const size_t size = std::min(out.size(), text_size_ - text_begin_);
    std::copy_n(text_.begin() + static_cast<ptrdiff_t>(text_begin_), size,
                out.begin());
    text_begin_ += size;
    step.produced_bytes = size;
  }

  bool DecodeBlock() {
    text_.resize(kLegacyBlockSizeBytes);
    const int size = LZ4_decompress_safe(
        AsText(stored_).data(), AsMutableChars(text_),
        static_cast<int>(stored_.size()), static_cast<int>(text_.size()));
    stored_.clear();
    text_begin_ = 0;
    text_size_ = static_cast<size_t>(std::max(size, 0));
    return size >= 0;
  }

  static char* AsMutableChars(std::vector<uint8_t>& bytes) {
    return reinterpret_cast<char*>(  // NOLINT(*-reinterpret-cast)
        bytes.data());
  }

  LZ4F_dctx* context_ = nullptr;
  bool has_magic_ = false;
  bool is_legacy_ = false;
  // Input of a frame that the next step can use.
  size_t wanted_bytes_ = 0;
  // A magic number, or the size of a block of the legacy format.
  std::array<uint8_t, kLz4MagicSizeBytes> prefix_ = {};
  size_t prefix_size_ = 0;
  // The compressed block of the legacy format that is being read; empty between
  // blocks.
  std::vector<uint8_t> stored_;
  size_t stored_size_ = 0;
  // Its text.
  std::vector<uint8_t> text_;
  size_t text_begin_ = 0;
  size_t text_size_ = 0;
};

}  // namespace

bool IsLz4Start(ByteView start) {
  return start.size() >= kLz4MagicSizeBytes && IsLz4Magic(start.data()) &&
         !IsSkippableFrame(start);
}

std::unique_ptr<MemberDecoder> NewLz4Decoder() {
  auto decoder = std::make_unique<Lz4Decoder>();
  return decoder->Init() ? std::move(decoder) : nullptr;
}

}  // namespace quire
