// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/streams/gzip_stream.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"

#include "server/ingest/sources/streams/member_stream.h"

namespace quire {
namespace {

// 15 bits of window, and 16 for a gzip header only.
constexpr int kGzipWindowBits = 15 + 16;
// Start of a member: deflate is the only method.
constexpr std::array<uint8_t, 3> kMagic = {0x1F, 0x8B, 8};
// Header, code table and first bytes.
constexpr size_t kPrefixSizeBytes = 1024;
constexpr size_t kPieceSizeBytesMax = size_t{1} << 30;

class GzipDecoder final : public MemberDecoder {
 public:
  GzipDecoder() = default;

  ~GzipDecoder() override { inflateEnd(&stream_); }

  GzipDecoder(const GzipDecoder&) = delete;
  GzipDecoder& operator=(const GzipDecoder&) = delete;

  // False without memory.
  bool Init() { return inflateInit2(&stream_, kGzipWindowBits) == Z_OK; }

  absl::string_view member_name() const override { return "gzip member"; }

  MemberPadding padding() const override { return MemberPadding::kAtEnd; }

  size_t MagicSizeBytes() const override { return kMagic.size(); }

  bool HasMagic(ByteView bytes) const override {
    const size_t size = std::min(bytes.size(), kMagic.size());
    return std::equal(bytes.begin(),
                      bytes.begin() + static_cast<ptrdiff_t>(size),
                      kMagic.begin());
  }

  size_t PrefixSizeBytes() const override { return kPrefixSizeBytes; }

  void Reset() override { inflateReset(&stream_); }

  Step Decode(ByteView in, MutableByteView out) override {
    const auto in_size =
        static_cast<uInt>(std::min(in.size(), kPieceSizeBytesMax));
    const auto out_size =
        static_cast<uInt>(std::min(out.size(), kPieceSizeBytesMax));
    // zlib only reads there.
    stream_.next_in =
        const_cast<Bytef*>(in.data());  // NOLINT(*-pro-type-const-cast)
    stream_.avail_in = in_size;
    stream_.next_out = out.data();
    stream_.avail_out = out_size;
    const int result = inflate(&stream_, Z_SYNC_FLUSH);
    Step step;
    step.consumed_bytes = in_size - stream_.avail_in;
    step.produced_bytes = out_size - stream_.avail_out;
    step.has_ended = result == Z_STREAM_END;
    // Z_BUF_ERROR: no progress, for lack of input.
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
      step.error = stream_.msg != nullptr ? stream_.msg : "damaged gzip data";
      step.is_out_of_memory = result == Z_MEM_ERROR;
    }
    return step;
  }

 private:
  z_stream stream_ = {};
};

}  // namespace

absl::StatusOr<std::unique_ptr<ByteStream>> OpenGzipStream(
    std::unique_ptr<ByteStream> compressed, std::string name) {
  auto decoder = std::make_unique<GzipDecoder>();
  if (!decoder->Init()) {
    return absl::ResourceExhaustedError(
        absl::StrCat(name, ": no memory to decompress it"));
  }
  return std::make_unique<MemberStream>(std::move(compressed), std::move(name),
                                        std::move(decoder));
}

}  // namespace quire
