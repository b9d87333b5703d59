// SPDX-License-Identifier: Apache-2.0
#include <brotli/decode.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"

#include "client/quire/payload/body_decoder.h"
#include "codecs/base/check.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

constexpr size_t kBufferSizeBytes = 64 << 10;
// Window that decoders of "zstd" must support (RFC 8878, section 7): 8 MiB.
constexpr int kZstdWindowLogMax = 23;

// Common code for the libraries: the first bytes show whether the body is
// coded, and output is buffered.
class ContentDecoder : public BodyDecoder {
 public:
  // `magic_size_bytes`: bytes that IsCoded() examines, at most 4.
  ContentDecoder(const char* name, size_t magic_size_bytes)
      : name_(name),
        magic_size_bytes_(magic_size_bytes),
        buffer_(kBufferSizeBytes) {}

  absl::Status Feed(ByteView coded, PayloadSink out) final {
    if (state_ == State::kUnknown) {
      const size_t taken =
          std::min(coded.size(), magic_size_bytes_ - first_.size());
      const ByteView front = coded.first(taken);
      first_.insert(first_.end(), front.begin(), front.end());
      coded = coded.subspan(taken);
      if (first_.size() < magic_size_bytes_) {
        return absl::OkStatus();
      }
      state_ = IsCoded(first_) ? State::kCoded : State::kNotCoded;
      QUIRE_RETURN_IF_ERROR(Take(first_, out));
    }
    return Take(coded, out);
  }

  absl::Status Finish(PayloadSink out) final {
    // An empty body needs no coding.
    if (state_ == State::kUnknown) {
      state_ = State::kNotCoded;
      return Take(first_, out);
    }
    if (state_ == State::kCoded && has_begun_ && !IsComplete()) {
      return absl::DataLossError(absl::StrCat("the body is cut short: its ",
                                              name_, " data do not end"));
    }
    return absl::OkStatus();
  }

  bool was_not_coded() const final {
    return state_ == State::kNotCoded && !first_.empty();
  }

 protected:
  // True if a body with these first bytes is coded as its header says.
  virtual bool IsCoded(ByteView first) = 0;
  // Decodes all of `coded`. REQUIRES: not empty.
  virtual absl::Status Decode(ByteView coded, PayloadSink out) = 0;
  virtual bool IsComplete() const = 0;

  MutableByteView buffer() { return MutableByteView(buffer_); }

  absl::Status Emit(size_t size, PayloadSink out) {
    return size == 0 ? absl::OkStatus() : out(ByteView(buffer_).first(size));
  }

  absl::Status Malformed(absl::string_view why) const {
    return absl::DataLossError(
        absl::StrCat("the body is no ", name_,
                     " data, as its header says, or damaged: ", why));
  }

 private:
  enum class State { kUnknown, kCoded, kNotCoded };

  absl::Status Take(ByteView bytes, PayloadSink out) {
    if (bytes.empty()) {
      return absl::OkStatus();
    }
    if (state_ == State::kNotCoded) {
      return out(bytes);
    }
    has_begun_ = true;
    return Decode(bytes, out);
  }

  const char* const name_;
  const size_t magic_size_bytes_;
  std::vector<uint8_t> buffer_;
  std::vector<uint8_t> first_;
  State state_ = State::kUnknown;
  bool has_begun_ = false;
};

// gzip (RFC 1952), with any number of members; or deflate, which is zlib's
// format (RFC 1950) or, from some servers, raw DEFLATE (RFC 1951).
class ZlibDecoder final : public ContentDecoder {
 public:
  enum class Format { kGzip, kDeflate };

  explicit ZlibDecoder(Format format)
      : ContentDecoder(format == Format::kGzip ? "gzip" : "deflate", 2),
        format_(format) {}

  ~ZlibDecoder() override { inflateEnd(&stream_); }

 protected:
  bool IsCoded(ByteView first) override {
    constexpr int kGzipBits = 16;
    int window_bits = MAX_WBITS;
    if (format_ == Format::kGzip) {
      if (first[0] != 0x1F || first[1] != 0x8B) {
        return false;
      }
      window_bits += kGzipBits;
    } else if ((first[0] & 0x0F) != 8 ||
               (first[0] * 256 + first[1]) % 31 != 0) {
      window_bits = -MAX_WBITS;
    }
    QUIRE_CHECK(inflateInit2(&stream_, window_bits) == Z_OK,
                "zlib is out of memory");
    return true;
  }

  absl::Status Decode(ByteView coded, PayloadSink out) override {
    // zlib counts in 32 bits.
    while (!coded.empty() && !ignores_rest_) {
      const ByteView part = coded.first(
          std::min<size_t>(coded.size(), std::numeric_limits<int>::max()));
      coded = coded.subspan(part.size());
      QUIRE_RETURN_IF_ERROR(DecodePart(part, out));
    }
    return absl::OkStatus();
  }

  bool IsComplete() const override { return has_ended_; }

 private:
  absl::Status DecodePart(ByteView coded, PayloadSink out) {
    stream_.next_in = const_cast<uint8_t*>(coded.data());
    stream_.avail_in = static_cast<unsigned>(coded.size());
    for (bool more = true; more && !ignores_rest_;) {
      if (has_ended_) {
        if (stream_.avail_in == 0) {
          break;
        }
        // Another member follows, or ignorable bytes.
        if (format_ != Format::kGzip || *stream_.next_in != 0x1F) {
          ignores_rest_ = true;
          break;
        }
        inflateReset(&stream_);
        has_ended_ = false;
        is_first_member_ = false;
      }
      stream_.next_out = buffer().data();
      stream_.avail_out = static_cast<unsigned>(buffer().size());
      const int result = inflate(&stream_, Z_NO_FLUSH);
      const size_t size = buffer().size() - stream_.avail_out;
      QUIRE_RETURN_IF_ERROR(Emit(size, out));
      if (result == Z_STREAM_END) {
        has_ended_ = true;
      } else if (result != Z_OK && result != Z_BUF_ERROR) {
        if (!is_first_member_ && stream_.total_out == 0) {
          has_ended_ = true;
          ignores_rest_ = true;
          break;
        }
        return Malformed(stream_.msg == nullptr ? "zlib refuses it"
                                                : stream_.msg);
      }
      more = stream_.avail_in > 0 || stream_.avail_out == 0;
    }
    return absl::OkStatus();
  }

  const Format format_;
  z_stream stream_ = {};
  bool has_ended_ = false;
  bool is_first_member_ = true;
  // Bytes after the end are not coded.
  bool ignores_rest_ = false;
};

// RFC 7932.
class BrotliDecoder final : public ContentDecoder {
 public:
  BrotliDecoder()
      : ContentDecoder("br", 0),
        state_(BrotliDecoderCreateInstance(nullptr, nullptr, nullptr)) {
    QUIRE_CHECK(state_ != nullptr, "brotli is out of memory");
  }

  ~BrotliDecoder() override { BrotliDecoderDestroyInstance(state_); }

 protected:
  bool IsCoded(ByteView /*first*/) override { return true; }

  absl::Status Decode(ByteView coded, PayloadSink out) override {
    size_t in_size = coded.size();
    const uint8_t* in = coded.data();
    while (!is_complete_) {
      size_t out_size = buffer().size();
      uint8_t* next_out = buffer().data();
      const BrotliDecoderResult result = BrotliDecoderDecompressStream(
          state_, &in_size, &in, &out_size, &next_out, nullptr);
      QUIRE_RETURN_IF_ERROR(Emit(buffer().size() - out_size, out));
      if (result == BROTLI_DECODER_RESULT_ERROR) {
        return Malformed(
            BrotliDecoderErrorString(BrotliDecoderGetErrorCode(state_)));
      }
      is_complete_ = result == BROTLI_DECODER_RESULT_SUCCESS;
      if (result == BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT) {
        break;
      }
    }
    return absl::OkStatus();
  }

  bool IsComplete() const override { return is_complete_; }

 private:
  BrotliDecoderState* const state_;
  bool is_complete_ = false;
};

// RFC 8878; any number of frames.
class ZstdDecoder final : public ContentDecoder {
 public:
  ZstdDecoder() : ContentDecoder("zstd", 4), context_(ZSTD_createDCtx()) {
    QUIRE_CHECK(context_ != nullptr, "zstd is out of memory");
    ZSTD_DCtx_setParameter(context_, ZSTD_d_windowLogMax, kZstdWindowLogMax);
  }

  ~ZstdDecoder() override { ZSTD_freeDCtx(context_); }

 protected:
  bool IsCoded(ByteView first) override {
    constexpr std::array<uint8_t, 4> kFrame = {0x28, 0xB5, 0x2F, 0xFD};
    constexpr std::array<uint8_t, 3> kSkippable = {0x2A, 0x4D, 0x18};
    return std::equal(kFrame.begin(), kFrame.end(), first.begin()) ||
           ((first[0] & 0xF0) == 0x50 &&
            std::equal(kSkippable.begin(), kSkippable.end(),
                       first.begin() + 1));
  }

  absl::Status Decode(ByteView coded, PayloadSink out) override {
    ZSTD_inBuffer in = {coded.data(), coded.size(), 0};
    for (bool more = true; more;) {
      ZSTD_outBuffer decoded = {buffer().data(), buffer().size(), 0};
      const size_t result = ZSTD_decompressStream(context_, &decoded, &in);
      if (ZSTD_isError(result) != 0) {
        return Malformed(ZSTD_getErrorName(result));
      }
      is_complete_ = result == 0;
      QUIRE_RETURN_IF_ERROR(Emit(decoded.pos, out));
      more = in.pos < in.size || (!is_complete_ && decoded.pos == decoded.size);
    }
    return absl::OkStatus();
  }

  bool IsComplete() const override { return is_complete_; }

 private:
  ZSTD_DCtx* const context_;
  bool is_complete_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BodyDecoder>> MakeContentDecoder(
    absl::string_view coding) {
  if (coding == "gzip" || coding == "x-gzip") {
    return std::make_unique<ZlibDecoder>(ZlibDecoder::Format::kGzip);
  }
  if (coding == "deflate") {
    return std::make_unique<ZlibDecoder>(ZlibDecoder::Format::kDeflate);
  }
  if (coding == "br") {
    return std::make_unique<BrotliDecoder>();
  }
  if (coding == "zstd") {
    return std::make_unique<ZstdDecoder>();
  }
  return absl::DataLossError(absl::StrCat(
      "the body is coded as ", QuotedText(coding, 40),
      "; known are gzip, deflate, br, zstd and, for transfer, chunked"));
}

}  // namespace quire
