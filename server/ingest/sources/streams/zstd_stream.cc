// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/streams/zstd_stream.h"

#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/endian.h"
#include "server/ingest/sources/streams/member_stream.h"

namespace quire {
namespace {

// The longest frame header (RFC 8878, section 3.1.1): 4 bytes of magic number
// and 14 of fields.
constexpr size_t kFrameHeaderSizeBytesMax = 18;
// Text leaves the decoder a block at a time.
constexpr size_t kZstdPrefixSizeBytes =
    kFrameHeaderSizeBytesMax + 3 + ZSTD_BLOCKSIZE_MAX;

// True if `bytes`, too few for a magic number, may begin one.
bool MayBeginFrame(ByteView bytes) {
  constexpr std::array<uint8_t, 3> kFrame = {0x28, 0xB5, 0x2F};
  constexpr std::array<uint8_t, 3> kSkippable = {0x50, 0x2A, 0x4D};
  const auto begins = [bytes](const std::array<uint8_t, 3>& magic,
                              uint8_t first_mask) {
    return bytes.empty() ||
           ((bytes[0] & first_mask) == magic[0] &&
            std::equal(bytes.begin() + 1, bytes.end(), magic.begin() + 1));
  };
  return begins(kFrame, 0xFF) || begins(kSkippable, 0xF0);
}

// Returns the window that a frame's header requires (RFC 8878, section
// 3.1.1.1).
uint64_t WindowSizeBytes(
    const std::array<uint8_t, kFrameHeaderSizeBytesMax>& header) {
  const uint8_t descriptor = header[kZstdMagicSizeBytes];
  const uint8_t* const fields = &header[kZstdMagicSizeBytes + 1];
  if ((descriptor & 0x20) == 0) {
    const uint64_t base = uint64_t{1} << (10 + (fields[0] >> 3));
    return base + base / 8 * (fields[0] & 7);
  }
  // A single segment: the window is the text. Windows of more than 1 KiB take
  // at least four bytes.
  constexpr std::array<size_t, 4> kDictionaryIdSizeBytes = {0, 1, 2, 4};
  const uint8_t* const size = fields + kDictionaryIdSizeBytes[descriptor & 3];
  return descriptor >> 6 == 3 ? LoadLittleEndian<uint64_t>(size)
                              : LoadLittleEndian<uint32_t>(size);
}

class ZstdDecoder final : public MemberDecoder {
 public:
  ZstdDecoder(std::shared_ptr<const ZstdDictionary> dictionary,
              uint64_t window_size_bytes_max)
      : dictionary_(std::move(dictionary)),
        window_size_bytes_max_(window_size_bytes_max),
        context_(ZSTD_createDCtx()) {}

  // False without memory.
  bool Init() {
    // The largest power of two that is not over the limit.
    const int window_log = static_cast<int>(std::bit_width(std::clamp(
                               window_size_bytes_max_, kWindowSizeBytesMin,
                               kWindowSizeBytesMax))) -
                           1;
    return context_ != nullptr &&
           ZSTD_isError(ZSTD_DCtx_setParameter(
               context_.get(), ZSTD_d_windowLogMax, window_log)) == 0 &&
           (dictionary_ == nullptr ||
            ZSTD_isError(
                ZSTD_DCtx_refDDict(context_.get(), dictionary_->get())) == 0);
  }

  absl::string_view member_name() const override { return "zstd frame"; }

  MemberPadding padding() const override { return MemberPadding::kNone; }

  size_t MagicSizeBytes() const override { return kZstdMagicSizeBytes; }

  bool HasMagic(ByteView bytes) const override {
    return bytes.size() < kZstdMagicSizeBytes
               ? MayBeginFrame(bytes)
               : IsZstdFrame(bytes) || IsSkippableFrame(bytes);
  }

  size_t PrefixSizeBytes() const override { return kZstdPrefixSizeBytes; }

  void Reset() override {
    ZSTD_DCtx_reset(context_.get(), ZSTD_reset_session_only);
    header_size_ = 0;
    text_size_bytes_ = 0;
    wanted_bytes_ = kFrameHeaderSizeBytesMax;
  }

  Step Decode(ByteView in, MutableByteView out) override {
    // No more than a block: libzstd drops what it has decoded in a call before
    // it finds damage.
    in = in.first(std::min(in.size(), std::max<size_t>(wanted_bytes_, 1)));
    const size_t more = std::min(in.size(), header_.size() - header_size_);
    std::copy_n(in.data(), more, header_.data() + header_size_);
    header_size_ += more;
    ZSTD_inBuffer source = {in.data(), in.size(), 0};
    ZSTD_outBuffer target = {out.data(), out.size(), 0};
    const size_t result =
        ZSTD_decompressStream(context_.get(), &target, &source);
    Step step;
    step.consumed_bytes = source.pos;
    step.produced_bytes = target.pos;
    step.has_ended = result == 0;
    wanted_bytes_ = result;
    text_size_bytes_ += target.pos;
    if (ZSTD_isError(result) != 0) {
      Explain(ZSTD_getErrorCode(result), result, step);
    } else if (step.has_ended) {
      CheckTextSize(step);
    }
    return step;
  }

 private:
  // Fails the step that ends a frame if its header states another size of its
  // text. libzstd 1.5.4 compares them only if one call has the whole frame.
  void CheckTextSize(Step& step) const {
    const uint64_t stated =
        ZSTD_getFrameContentSize(header_.data(), header_size_);
    if (stated != ZSTD_CONTENTSIZE_UNKNOWN &&
        stated != ZSTD_CONTENTSIZE_ERROR && stated != text_size_bytes_) {
      step.has_ended = false;
      step.error = absl::StrCat(
          "damaged zstd data (the frame has ",
          FormatCounted(text_size_bytes_, "byte", "bytes"),
          " of text, and its header states ", FormatCount(stated), ")");
    }
  }

  struct Deleter {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };

  // Sets the error.
  void Explain(ZSTD_ErrorCode code, size_t result, Step& step) const {
    const unsigned needed =
        ZSTD_getDictID_fromFrame(header_.data(), header_size_);
    step.is_out_of_memory = code == ZSTD_error_memory_allocation;
    if (code == ZSTD_error_frameParameter_windowTooLarge) {
      ExplainWindow(step);
    } else if (code == ZSTD_error_dictionary_wrong) {
      step.error = absl::StrCat(
          "the text needs the zstd dictionary with id ", needed, " (",
          dictionary_ == nullptr
              ? std::string("the file does not begin with one")
              : absl::StrCat("the file begins with the one with id ",
                             dictionary_->id()),
          ")");
    } else {
      step.error =
          absl::StrCat("damaged zstd data (", ZSTD_getErrorName(result), ")");
    }
  }

  void ExplainWindow(Step& step) const {
    const uint64_t window = WindowSizeBytes(header_);
    step.error = absl::StrCat("a window of ", FormatByteSize(window),
                              " is over the limit of ",
                              FormatByteSize(window_size_bytes_max_));
    // zstd's decoder takes powers of two.
    const uint64_t limit = std::bit_ceil(std::min(window, kWindowSizeBytesMax));
    step.remedy =
        window <= kWindowSizeBytesMax
            ? absl::StrCat("; it takes that much memory: give --window-max ",
                           FormatByteSizeExact(limit))
            : absl::StrCat(
                  "; compress the text again with a window of at most ",
                  FormatByteSize(kWindowSizeBytesMax));
  }

  const std::shared_ptr<const ZstdDictionary> dictionary_;
  const uint64_t window_size_bytes_max_;
  const std::unique_ptr<ZSTD_DCtx, Deleter> context_;
  // The first bytes of the current frame.
  std::array<uint8_t, kFrameHeaderSizeBytesMax> header_ = {};
  size_t header_size_ = 0;
  // Size of the text decoded from the current frame.
  uint64_t text_size_bytes_ = 0;
  // Input that the next step can use.
  size_t wanted_bytes_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ByteStream>> OpenZstdStream(
    std::unique_ptr<ByteStream> compressed, std::string name,
    std::shared_ptr<const ZstdDictionary> dictionary,
    uint64_t window_size_bytes_max) {
  auto decoder = std::make_unique<ZstdDecoder>(std::move(dictionary),
                                               window_size_bytes_max);
  if (!decoder->Init()) {
    return absl::ResourceExhaustedError(
        absl::StrCat(name, ": no memory to decompress it"));
  }
  return std::make_unique<MemberStream>(std::move(compressed), std::move(name),
                                        std::move(decoder));
}

}  // namespace quire
