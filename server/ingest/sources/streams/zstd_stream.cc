// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/streams/zstd_stream.h"

#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"

#include "server/ingest/sources/streams/member_stream.h"

namespace quire {
namespace {

// The longest frame header (RFC 8878, section 3.1.1): 4 bytes of magic number
// and 14 of fields.
constexpr size_t kFrameHeaderSizeBytesMax = 18;
// Text leaves the decoder a block at a time.
constexpr size_t kZstdPrefixSizeBytes =
    kFrameHeaderSizeBytesMax + 3 + ZSTD_BLOCKSIZE_MAX;

class ZstdDecoder final : public MemberDecoder {
 public:
  explicit ZstdDecoder(std::shared_ptr<const ZstdDictionary> dictionary)
      : dictionary_(std::move(dictionary)), context_(ZSTD_createDCtx()) {}

  // False without memory.
  bool Init() {
    return context_ != nullptr &&
           (dictionary_ == nullptr ||
            ZSTD_isError(
                ZSTD_DCtx_refDDict(context_.get(), dictionary_->get())) == 0);
  }

  absl::string_view member_name() const override { return "zstd frame"; }

  bool AllowsPadding() const override { return false; }

  bool HasMagic(ByteView bytes) const override { return IsZstdFrame(bytes); }

  size_t PrefixSizeBytes() const override { return kZstdPrefixSizeBytes; }

  void Reset() override {
    ZSTD_DCtx_reset(context_.get(), ZSTD_reset_session_only);
    header_size_ = 0;
  }

  Step Decode(ByteView in, MutableByteView out) override {
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
    if (ZSTD_isError(result) != 0) {
      step.error = Explain(ZSTD_getErrorCode(result), result);
    }
    return step;
  }

 private:
  struct Deleter {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };

  std::string Explain(ZSTD_ErrorCode code, size_t result) const {
    const unsigned needed =
        ZSTD_getDictID_fromFrame(header_.data(), header_size_);
    if (code == ZSTD_error_dictionary_wrong) {
      return absl::StrCat(
          "the text needs the zstd dictionary with id ", needed, " (",
          dictionary_ == nullptr
              ? std::string("the file does not begin with one")
              : absl::StrCat("the file begins with the one with id ",
                             dictionary_->id()),
          ")");
    }
    return absl::StrCat("damaged zstd data (", ZSTD_getErrorName(result), ")");
  }

  const std::shared_ptr<const ZstdDictionary> dictionary_;
  const std::unique_ptr<ZSTD_DCtx, Deleter> context_;
  // The first bytes of the current frame.
  std::array<uint8_t, kFrameHeaderSizeBytesMax> header_ = {};
  size_t header_size_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ByteStream>> OpenZstdStream(
    std::unique_ptr<ByteStream> compressed, std::string name,
    std::shared_ptr<const ZstdDictionary> dictionary) {
  auto decoder = std::make_unique<ZstdDecoder>(std::move(dictionary));
  if (!decoder->Init()) {
    return absl::ResourceExhaustedError(
        absl::StrCat(name, ": no memory to decompress it"));
  }
  return std::make_unique<MemberStream>(std::move(compressed), std::move(name),
                                        std::move(decoder));
}

}  // namespace quire
