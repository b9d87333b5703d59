// SPDX-License-Identifier: Apache-2.0
#include <lzma.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>

#include "absl/strings/str_cat.h"

#include "codecs/base/check.h"
#include "codecs/codec_base.h"
#include "codecs/codec_factories.h"

namespace quire {
namespace {

// liblzma keeps the memory of a stream from one use to the next.
class LzmaStream {
 public:
  LzmaStream() = default;
  LzmaStream(const LzmaStream&) = delete;
  LzmaStream& operator=(const LzmaStream&) = delete;

  ~LzmaStream() { lzma_end(&stream_); }

  lzma_stream& get() { return stream_; }

 private:
  lzma_stream stream_ = LZMA_STREAM_INIT;
};

class XzCodec final : public CodecBase {
 public:
  XzCodec(const CodecInfo& info, int level, CodecUse use)
      : CodecBase(info, use), level_(level) {}

  // LZMA2 stores what does not shrink in chunks of up to 64 KiB with headers of
  // 3 bytes; liblzma's are at least half as long.
  size_t StoredSizeMax(size_t raw_size) const override {
    return raw_size + raw_size / (8 << 10) + 64;
  }

  std::unique_ptr<Scratch> NewScratch() const override {
    return std::make_unique<XzScratch>();
  }

  size_t MemoryBytes() const override { return sizeof(*this); }

  absl::Status Decode(ByteView stored, MutableByteView raw,
                      Scratch& scratch) const override {
    lzma_stream& stream = static_cast<XzScratch&>(scratch).decoder.get();
    Start(stored, raw, stream);
    lzma_ret result = lzma_code(&stream, LZMA_FINISH);
    // The end marker may lie behind the last byte of text.
    uint8_t beyond = 0;
    if (result == LZMA_OK || result == LZMA_BUF_ERROR) {
      stream.next_out = &beyond;
      stream.avail_out = 1;
      result = lzma_code(&stream, LZMA_FINISH);
      if (stream.avail_out == 0) {
        return Damaged(
            stored, absl::StrCat("it holds more than ", raw.size(), " bytes"));
      }
    }
    QUIRE_CHECK(result != LZMA_MEM_ERROR);
    if (result != LZMA_STREAM_END) {
      return Damaged(stored, "not an LZMA2 stream");
    }
    if (stream.total_out != raw.size()) {
      return WrongSize(stored, stream.total_out, raw.size());
    }
    if (stream.avail_in != 0) {
      return Damaged(stored, absl::StrCat(stream.avail_in,
                                          " bytes follow the LZMA2 stream"));
    }
    return absl::OkStatus();
  }

  absl::Status DecodeRange(ByteView stored, size_t raw_size, size_t offset,
                           MutableByteView out,
                           Scratch& scratch) const override {
    QUIRE_CHECK(offset <= raw_size && out.size() <= raw_size - offset);
    const size_t end = offset + out.size();
    if (end == raw_size) {
      return BlockCodec::DecodeRange(stored, raw_size, offset, out, scratch);
    }
    const MutableByteView text = offset == 0 ? out : scratch.TextBuffer(end);
    lzma_stream& stream = static_cast<XzScratch&>(scratch).decoder.get();
    Start(stored, text, stream);
    const lzma_ret result = lzma_code(&stream, LZMA_RUN);
    QUIRE_CHECK(result != LZMA_MEM_ERROR);
    if (stream.avail_out != 0) {
      return result == LZMA_STREAM_END
                 ? WrongSize(stored, stream.total_out, raw_size)
                 : Damaged(stored, "not an LZMA2 stream");
    }
    if (offset != 0) {
      std::ranges::copy(text.subspan(offset), out.begin());
    }
    return absl::OkStatus();
  }

 protected:
  absl::StatusOr<size_t> EncodeBlock(ByteView raw, MutableByteView stored,
                                     Scratch& scratch) const override {
    lzma_options_lzma options;
    QUIRE_CHECK(!lzma_lzma_preset(&options, static_cast<uint32_t>(level_)));
    options.dict_size = kBlockSizeBytesMax;
    const std::array<lzma_filter, 2> filters = Filters(options);
    lzma_stream& stream = static_cast<XzScratch&>(scratch).encoder.get();
    const lzma_ret started = lzma_raw_encoder(&stream, filters.data());
    QUIRE_CHECK(started == LZMA_OK);
    stream.next_in = raw.data();
    stream.avail_in = raw.size();
    stream.next_out = stored.data();
    stream.avail_out = stored.size();
    const lzma_ret result = lzma_code(&stream, LZMA_FINISH);
    if (result != LZMA_STREAM_END) {
      return absl::InternalError(absl::StrCat("liblzma refused a block of ",
                                              raw.size(), " bytes: ", result));
    }
    return static_cast<size_t>(stream.total_out);
  }

 private:
  struct XzScratch final : public Scratch {
    LzmaStream encoder;
    LzmaStream decoder;
  };

  static std::array<lzma_filter, 2> Filters(lzma_options_lzma& options) {
    return {lzma_filter{.id = LZMA_FILTER_LZMA2, .options = &options},
            lzma_filter{.id = LZMA_VLI_UNKNOWN, .options = nullptr}};
  }

  // The options are constants: it fails only without memory.
  static void Start(ByteView stored, MutableByteView text,
                    lzma_stream& stream) {
    lzma_options_lzma options = {};
    options.dict_size = kBlockSizeBytesMax;
    const std::array<lzma_filter, 2> filters = Filters(options);
    const lzma_ret started = lzma_raw_decoder(&stream, filters.data());
    QUIRE_CHECK(started == LZMA_OK);
    stream.next_in = stored.data();
    stream.avail_in = stored.size();
    stream.next_out = text.data();
    stream.avail_out = text.size();
  }

  const int level_;
};

}  // namespace

std::unique_ptr<BlockCodec> MakeXzCodec(const CodecInfo& info, int level,
                                        CodecUse use) {
  return std::make_unique<XzCodec>(info, level, use);
}

}  // namespace quire
