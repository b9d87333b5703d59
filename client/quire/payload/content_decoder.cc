// SPDX-License-Identifier: Apache-2.0
#include <brotli/decode.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "client/quire/payload/body_decoder.h"
#include "codecs/base/check.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

constexpr size_t kBufferSizeBytes = 64 << 10;
// First part of a body by which a coding without a signature is recognised, and
// upper bound on what is decoded of it for that.
constexpr size_t kTrialSizeBytes = 4 << 10;
constexpr size_t kTrialOutputSizeBytesMax = 64 << 10;
constexpr absl::string_view kGzipMagic = "\x1F\x8B";
// Window that decoders of "zstd" must support (RFC 8878, section 7): 8 MiB.
constexpr int kZstdWindowLogMax = 23;

// True for text, which compressed bytes are not: they have control characters
// or, where they are few, are not UTF-8.
bool IsText(ByteView bytes) {
  const absl::string_view text = AsText(bytes);
  const bool has_control = std::any_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_iscntrl(static_cast<unsigned char>(c)) &&
           !absl::ascii_isspace(static_cast<unsigned char>(c));
  });
  constexpr size_t kFewBytes = 64;
  return !has_control && (bytes.size() >= kFewBytes || IsUtf8(text));
}

// True if `first` begins with `magic`; if they are not `is_whole`, also where
// they end inside of it.
bool BeginsWith(ByteView first, absl::string_view magic, bool is_whole) {
  const absl::string_view text = AsText(first).substr(0, magic.size());
  return is_whole ? text == magic : absl::StartsWith(magic, text);
}

// Common code for the libraries: the first bytes show whether the body is
// coded, and output is buffered.
class ContentDecoder : public BodyDecoder {
 public:
  // `first_size_bytes`: bytes that IsCoded() examines.
  ContentDecoder(const char* name, size_t first_size_bytes)
      : name_(name),
        first_size_bytes_(first_size_bytes),
        buffer_(kBufferSizeBytes) {}

  absl::Status Feed(ByteView coded, PayloadSink out) final {
    if (state_ == State::kUnknown) {
      const size_t taken =
          std::min(coded.size(), first_size_bytes_ - first_.size());
      const ByteView front = coded.first(taken);
      first_.insert(first_.end(), front.begin(), front.end());
      coded = coded.subspan(taken);
      if (first_.size() < first_size_bytes_) {
        return absl::OkStatus();
      }
      QUIRE_RETURN_IF_ERROR(Begin(/*is_whole=*/false, out));
    }
    return Take(coded, out);
  }

  absl::Status Finish(bool is_whole, PayloadSink out) final {
    // An empty body needs no coding.
    if (state_ == State::kUnknown) {
      QUIRE_RETURN_IF_ERROR(Begin(is_whole, out));
    }
    if (is_whole && state_ == State::kCoded && has_begun_ && !IsComplete()) {
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
  // `is_whole`: they are all of it. Fewer than first_size_bytes are all that
  // there is, also if not `is_whole`. REQUIRES: not empty.
  virtual bool IsCoded(ByteView first, bool is_whole) = 0;
  // Decodes all of `coded`. REQUIRES: not empty.
  virtual absl::Status Decode(ByteView coded, PayloadSink out) = 0;
  virtual bool IsComplete() const = 0;

  // True if bytes after the end were ignored.
  virtual bool has_rest() const { return false; }

  // Tells by decoding them, for codings without a signature. The decoder must
  // be reset afterwards.
  bool SeemsCoded(ByteView first, bool is_whole) {
    size_t size_bytes = 0;
    const absl::Status status = Decode(first, [&](ByteView bytes) {
      size_bytes += bytes.size();
      return size_bytes > kTrialOutputSizeBytesMax
                 ? absl::CancelledError("decodes to enough")
                 : absl::OkStatus();
    });
    if (is_whole && status.ok() && IsComplete() && !has_rest()) {
      return true;
    }
    // Text may look like a stream that has just begun.
    if (IsText(first)) {
      return false;
    }
    return absl::IsCancelled(status) ||
           (status.ok() && (size_bytes > 0 || !(is_whole || IsComplete())));
  }

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

  absl::Status Begin(bool is_whole, PayloadSink out) {
    state_ = !first_.empty() && IsCoded(first_, is_whole) ? State::kCoded
                                                          : State::kNotCoded;
    return Take(first_, out);
  }

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
  const size_t first_size_bytes_;
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
      : ContentDecoder(format == Format::kGzip ? "gzip" : "deflate",
                       format == Format::kGzip ? 2 : kTrialSizeBytes),
        format_(format) {}

  ~ZlibDecoder() override { inflateEnd(&stream_); }

 protected:
  bool IsCoded(ByteView first, bool is_whole) override {
    constexpr int kGzipBits = 16;
    if (format_ == Format::kGzip) {
      Start(MAX_WBITS + kGzipBits);
      return BeginsWith(first, kGzipMagic, is_whole);
    }
    const bool has_header = first.size() >= 2 && (first[0] & 0x0F) == 8 &&
                            (first[0] * 256 + first[1]) % 31 == 0;
    // Headers that usual encoders write, and no text has.
    const bool is_sure = BeginsWith(first, "\x78\x01", is_whole) ||
                         BeginsWith(first, "\x78\x9C", is_whole) ||
                         BeginsWith(first, "\x78\xDA", is_whole);
    for (const int window_bits : {MAX_WBITS, -MAX_WBITS}) {
      if (window_bits > 0 && !has_header && !is_sure) {
        continue;
      }
      Start(window_bits);
      if (is_sure) {
        return true;
      }
      if (SeemsCoded(first, is_whole)) {
        Start(window_bits);
        return true;
      }
    }
    return false;
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

  bool has_rest() const override { return ignores_rest_; }

 private:
  void Start(int window_bits) {
    inflateEnd(&stream_);
    stream_ = {};
    has_ended_ = false;
    is_first_member_ = true;
    ignores_rest_ = false;
    QUIRE_CHECK(inflateInit2(&stream_, window_bits) == Z_OK,
                "zlib is out of memory");
  }

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
  BrotliDecoder() : ContentDecoder("br", kTrialSizeBytes) { Start(); }

  ~BrotliDecoder() override { BrotliDecoderDestroyInstance(state_); }

 protected:
  bool IsCoded(ByteView first, bool is_whole) override {
    const bool is_coded = SeemsCoded(first, is_whole);
    BrotliDecoderDestroyInstance(state_);
    Start();
    return is_coded;
  }

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
    has_rest_ = in_size > 0;
    return absl::OkStatus();
  }

  bool IsComplete() const override { return is_complete_; }

  bool has_rest() const override { return has_rest_; }

 private:
  void Start() {
    state_ = BrotliDecoderCreateInstance(nullptr, nullptr, nullptr);
    QUIRE_CHECK(state_ != nullptr, "brotli is out of memory");
    is_complete_ = false;
    has_rest_ = false;
  }

  BrotliDecoderState* state_ = nullptr;
  bool is_complete_ = false;
  bool has_rest_ = false;
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
  bool IsCoded(ByteView first, bool is_whole) override {
    return BeginsWith(first, "\x28\xB5\x2F\xFD", is_whole) ||
           ((first[0] & 0xF0) == 0x50 &&
            BeginsWith(first.subspan(1), "\x2A\x4D\x18", is_whole));
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

// A registered coding that is not decoded, and the first bytes of its bodies;
// none: any that are not text.
struct UndecodedCoding {
  const char* name;
  absl::string_view magic;
};

constexpr UndecodedCoding kUndecoded[] = {{"compress", "\x1F\x9D"},
                                          {"x-compress", "\x1F\x9D"},
                                          {"pack200-gzip", "\x1F\x8B"},
                                          {"dcb", "\xFF\x44\x43\x42"},
                                          {"dcz", "\x5E\x2A\x4D\x18"},
                                          {"aes128gcm", ""},
                                          {"exi", ""}};

// Fails where a body has such a coding.
class UndecodedDecoder final : public ContentDecoder {
 public:
  explicit UndecodedDecoder(const UndecodedCoding& coding)
      : ContentDecoder(coding.name, coding.magic.empty() ? kTrialSizeBytes
                                                         : coding.magic.size()),
        coding_(coding) {}

 protected:
  bool IsCoded(ByteView first, bool is_whole) override {
    return coding_.magic.empty() ? !IsText(first)
                                 : BeginsWith(first, coding_.magic, is_whole);
  }

  absl::Status Decode(ByteView /*coded*/, PayloadSink /*out*/) override {
    return absl::DataLossError(absl::StrCat(
        "the body is coded as ", QuotedText(coding_.name),
        "; known are gzip, deflate, br, zstd and, for transfer, chunked"));
  }

  bool IsComplete() const override { return false; }

 private:
  const UndecodedCoding coding_;
};

}  // namespace

std::unique_ptr<BodyDecoder> MakeContentDecoder(absl::string_view coding) {
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
  for (const UndecodedCoding& undecoded : kUndecoded) {
    if (coding == undecoded.name) {
      return std::make_unique<UndecodedDecoder>(undecoded);
    }
  }
  return nullptr;
}

}  // namespace quire
