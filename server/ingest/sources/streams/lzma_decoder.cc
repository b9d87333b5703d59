// SPDX-License-Identifier: GPL-3.0-or-later
#include <lzma.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/endian.h"
#include "server/ingest/sources/streams/member_decoders.h"

namespace quire {
namespace {

constexpr absl::string_view kXzMagic(
    "\xFD"
    "7zXZ\0",
    6);
constexpr absl::string_view kLzipMagic = "LZIP";
// The decoder's memory in addition to the dictionary, at most.
constexpr uint64_t kStateSizeBytesMax = uint64_t{1} << 20;

struct LzmaFormatInfo {
  absl::string_view member_name;
  absl::string_view magic;
  MemberPadding padding;
};

LzmaFormatInfo InfoOf(LzmaFormat format) {
  switch (format) {
    case LzmaFormat::kXz:
      return {"xz stream", kXzMagic, MemberPadding::kFoursAnywhere};
    case LzmaFormat::kLzip:
      return {"lzip member", kLzipMagic, MemberPadding::kAtEnd};
    case LzmaFormat::kLzma:
      return {"lzma stream", "", MemberPadding::kAtEnd};
  }
  return {};
}

class LzmaDecoder final : public MemberDecoder {
 public:
  LzmaDecoder(LzmaFormat format, uint64_t dictionary_size_bytes_max)
      : format_(format),
        info_(InfoOf(format)),
        dictionary_size_bytes_max_(dictionary_size_bytes_max) {}

  ~LzmaDecoder() override { lzma_end(&stream_); }

  LzmaDecoder(const LzmaDecoder&) = delete;
  LzmaDecoder& operator=(const LzmaDecoder&) = delete;

  absl::string_view member_name() const override { return info_.member_name; }

  MemberPadding padding() const override { return info_.padding; }

  size_t MagicSizeBytes() const override { return info_.magic.size(); }

  bool HasMagic(ByteView bytes) const override {
    return absl::StartsWith(info_.magic,
                            AsText(bytes).substr(0, info_.magic.size()));
  }

  void Reset() override {
    const uint64_t memory_bytes_max =
        dictionary_size_bytes_max_ + kStateSizeBytesMax;
    switch (format_) {
      case LzmaFormat::kXz:
        started_ = lzma_stream_decoder(&stream_, memory_bytes_max,
                                       LZMA_TELL_UNSUPPORTED_CHECK);
        break;
      case LzmaFormat::kLzip:
        started_ = lzma_lzip_decoder(&stream_, memory_bytes_max, 0);
        break;
      case LzmaFormat::kLzma:
        started_ = lzma_alone_decoder(&stream_, memory_bytes_max);
        break;
    }
  }

  Step Decode(ByteView in, MutableByteView out) override {
    Step step;
    stream_.next_in = in.data();
    stream_.avail_in = in.size();
    stream_.next_out = out.data();
    stream_.avail_out = out.size();
    const lzma_ret result =
        started_ == LZMA_OK ? lzma_code(&stream_, LZMA_RUN) : started_;
    step.consumed_bytes = in.size() - stream_.avail_in;
    step.produced_bytes = out.size() - stream_.avail_out;
    step.has_ended = result == LZMA_STREAM_END;
    // LZMA_BUF_ERROR: no progress, for lack of input.
    if (result != LZMA_OK && result != LZMA_STREAM_END &&
        result != LZMA_BUF_ERROR) {
      Explain(result, step);
    }
    return step;
  }

 private:
  void Explain(lzma_ret result, Step& step) const {
    step.is_out_of_memory = result == LZMA_MEM_ERROR;
    if (result == LZMA_MEMLIMIT_ERROR) {
      const uint64_t needed =
          (lzma_memusage(&stream_) + kStateSizeBytesMax - 1) &
          ~(kStateSizeBytesMax - 1);
      step.error = absl::StrCat(
          "a dictionary that takes ", FormatByteSize(needed),
          " is over the limit of ", FormatByteSize(dictionary_size_bytes_max_));
      step.remedy =
          needed <= kWindowSizeBytesMax
              ? absl::StrCat("; it takes that much memory: give --window-max ",
                             FormatByteSizeExact(needed))
              : absl::StrCat(
                    "; compress the text again with a dictionary of less than ",
                    FormatByteSize(kWindowSizeBytesMax));
    } else if (result == LZMA_UNSUPPORTED_CHECK) {
      step.error = "a check of a type that liblzma does not know";
    } else if (result == LZMA_OPTIONS_ERROR) {
      step.error = "filters or options that liblzma does not know";
    } else {
      step.error = absl::StrCat("damaged ", info_.member_name,
                                " (a checksum or a code is wrong)");
    }
  }

  const LzmaFormat format_;
  const LzmaFormatInfo info_;
  const uint64_t dictionary_size_bytes_max_;
  lzma_stream stream_ = LZMA_STREAM_INIT;
  lzma_ret started_ = LZMA_PROG_ERROR;
};

}  // namespace

bool IsXzStart(ByteView start) {
  return absl::StartsWith(AsText(start), kXzMagic);
}

bool IsLzipStart(ByteView start) {
  // Its version is 0 or 1.
  return start.size() > kLzipMagic.size() &&
         absl::StartsWith(AsText(start), kLzipMagic) &&
         start[kLzipMagic.size()] <= 1;
}

bool IsLzmaStart(ByteView start) {
  constexpr uint8_t kUsualProperties = 0x5D;
  constexpr uint64_t kTextSizeBytesMax = uint64_t{1} << 38;
  if (start.size() < kCompressedMagicSizeBytes ||
      start[0] != kUsualProperties) {
    return false;
  }
  const auto dictionary = LoadLittleEndian<uint32_t>(start.data() + 1);
  const auto text = LoadLittleEndian<uint64_t>(start.data() + 5);
  // 2^n or 2^n + 2^(n-1).
  const bool is_usual =
      dictionary == UINT32_MAX || std::has_single_bit(dictionary) ||
      (dictionary % 3 == 0 && std::has_single_bit(dictionary / 3));
  return is_usual && dictionary >= 4096 &&
         (text == UINT64_MAX || text < kTextSizeBytesMax);
}

std::unique_ptr<MemberDecoder> NewLzmaDecoder(
    LzmaFormat format, uint64_t dictionary_size_bytes_max) {
  return std::make_unique<LzmaDecoder>(format, dictionary_size_bytes_max);
}

}  // namespace quire
