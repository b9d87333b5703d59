// SPDX-License-Identifier: GPL-3.0-or-later
#include <bzlib.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

#include "server/ingest/sources/streams/member_decoders.h"

namespace quire {
namespace {

// The digit after it is the size of blocks.
constexpr absl::string_view kBzip2Magic = "BZh";
constexpr size_t kBzip2MagicSizeBytes = 4;
constexpr size_t kBzip2PieceSizeBytesMax = size_t{1} << 30;

// True if `text` begins like a stream, or is a prefix of such a start.
bool BeginsBzip2(absl::string_view text) {
  const absl::string_view magic = text.substr(0, kBzip2Magic.size());
  return absl::StartsWith(kBzip2Magic, magic) &&
         (text.size() < kBzip2MagicSizeBytes ||
          (text[kBzip2Magic.size()] >= '1' && text[kBzip2Magic.size()] <= '9'));
}

class Bzip2Decoder final : public MemberDecoder {
 public:
  Bzip2Decoder() = default;

  ~Bzip2Decoder() override { BZ2_bzDecompressEnd(&stream_); }

  Bzip2Decoder(const Bzip2Decoder&) = delete;
  Bzip2Decoder& operator=(const Bzip2Decoder&) = delete;

  absl::string_view member_name() const override { return "bzip2 stream"; }

  MemberPadding padding() const override { return MemberPadding::kAtEnd; }

  size_t MagicSizeBytes() const override { return kBzip2MagicSizeBytes; }

  bool HasMagic(ByteView bytes) const override {
    return BeginsBzip2(AsText(bytes));
  }

  void Reset() override {
    BZ2_bzDecompressEnd(&stream_);
    stream_ = {};
    has_memory_ = BZ2_bzDecompressInit(&stream_, 0, 0) == BZ_OK;
  }

  Step Decode(ByteView in, MutableByteView out) override {
    Step step;
    const auto in_size =
        static_cast<unsigned>(std::min(in.size(), kBzip2PieceSizeBytesMax));
    const auto out_size =
        static_cast<unsigned>(std::min(out.size(), kBzip2PieceSizeBytesMax));
    // libbz2 only reads there.
    stream_.next_in = const_cast<char*>(  // NOLINT(*-pro-type-const-cast)
        AsText(in).data());
    stream_.avail_in = in_size;
    stream_.next_out =
        reinterpret_cast<char*>(out.data());  // NOLINT(*-reinterpret-cast)
    stream_.avail_out = out_size;
    const int result = has_memory_ ? BZ2_bzDecompress(&stream_) : BZ_MEM_ERROR;
    step.consumed_bytes = in_size - stream_.avail_in;
    step.produced_bytes = out_size - stream_.avail_out;
    step.has_ended = result == BZ_STREAM_END;
    step.is_out_of_memory = result == BZ_MEM_ERROR;
    if (result == BZ_DATA_ERROR_MAGIC) {
      step.error = "damaged start of a bzip2 stream";
    } else if (result != BZ_OK && result != BZ_STREAM_END) {
      step.error = "damaged bzip2 data (a checksum or a code is wrong)";
    }
    return step;
  }

 private:
  bz_stream stream_ = {};
  bool has_memory_ = false;
};

}  // namespace

bool IsBzip2Start(ByteView start) {
  // The first block, or the end of a stream without any.
  constexpr std::array<absl::string_view, 2> kBlockMagic = {
      "\x31\x41\x59\x26\x53\x59", "\x17\x72\x45\x38\x50\x90"};
  const absl::string_view text = AsText(start);
  return text.size() >= kBzip2MagicSizeBytes && BeginsBzip2(text) &&
         std::ranges::any_of(kBlockMagic, [text](absl::string_view magic) {
           return absl::StartsWith(text.substr(kBzip2MagicSizeBytes), magic);
         });
}

std::unique_ptr<MemberDecoder> NewBzip2Decoder() {
  return std::make_unique<Bzip2Decoder>();
}

}  // namespace quire
