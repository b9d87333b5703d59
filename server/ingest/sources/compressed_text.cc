// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/compressed_text.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/bytes.h"
#include "codecs/base/endian.h"
#include "codecs/base/status_macros.h"
#include "server/ingest/sources/streams/gzip_stream.h"
#include "server/ingest/sources/streams/member_decoders.h"
#include "server/ingest/sources/streams/zstd_stream.h"

namespace quire {
namespace {

// Skippable frames searched for the first frame with text.
constexpr int kSkippableFrameCountMax = 1024;
// Magic number and size.
constexpr size_t kSkippableHeaderSizeBytes = 8;

// Moves `stream`, which is at its start, to the first frame that is not
// skippable, and returns the first bytes of that: of the file, unless it begins
// with skippable frames of zstd or lz4. Of a file of whole skippable frames
// alone it returns the magic number of zstd: such a file has no text.
absl::StatusOr<std::vector<uint8_t>> ReadMagic(ByteStream& stream) {
  bool is_skipped = false;
  std::vector<uint8_t> start(kSkippableHeaderSizeBytes);
  for (int i = 0;; ++i) {
    QUIRE_ASSIGN_OR_RETURN(const size_t size, ReadFully(stream, start));
    if (size < start.size() || i == kSkippableFrameCountMax ||
        !IsSkippableFrame(start)) {
      start.resize(size);
      break;
    }
    const auto size_bytes =
        LoadLittleEndian<uint32_t>(start.data() + kZstdMagicSizeBytes);
    QUIRE_ASSIGN_OR_RETURN(const uint64_t skipped, stream.Skip(size_bytes));
    is_skipped = skipped == size_bytes;
  }
  if (start.empty() && is_skipped) {
    return std::vector<uint8_t>{0x28, 0xB5, 0x2F, 0xFD};
  }
  const size_t read = start.size();
  start.resize(kCompressedMagicSizeBytes);
  QUIRE_ASSIGN_OR_RETURN(
      const size_t more,
      ReadFully(stream, MutableByteView(start).subspan(read)));
  start.resize(read + more);
  return start;
}

}  // namespace

absl::StatusOr<CompressedText> CompressedText::Detect(
    OpenStream open, std::string name, uint64_t size_bytes_max,
    uint64_t window_size_bytes_max) {
  CompressedText text(std::move(open), std::move(name), size_bytes_max,
                      window_size_bytes_max);
  QUIRE_ASSIGN_OR_RETURN(text.compression_, text.DetectCompression());
  if (text.compression_ == Compression::kZstd) {
    QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<ByteStream> stored,
                           text.open_());
    QUIRE_ASSIGN_OR_RETURN(text.dictionary_,
                           ReadZstdDictionary(*stored, text.name_));
  }
  return text;
}

absl::StatusOr<CompressedText::Compression> CompressedText::DetectCompression()
    const {
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<ByteStream> stored, open_());
  QUIRE_ASSIGN_OR_RETURN(const std::vector<uint8_t> start, ReadMagic(*stored));
  // The magic number includes deflate, gzip's only method: two bytes are too
  // few to call a file damaged if it does not decompress.
  if (start.size() >= 3 && start[0] == 0x1F && start[1] == 0x8B &&
      start[2] == 8) {
    return Compression::kGzip;
  }
  return IsZstdFrame(start)    ? Compression::kZstd
         : IsBzip2Start(start) ? Compression::kBzip2
         : IsXzStart(start)    ? Compression::kXz
         : IsLzipStart(start)  ? Compression::kLzip
         : IsLz4Start(start)   ? Compression::kLz4
         : IsLzwStart(start)   ? Compression::kCompress
         : IsLzmaStart(start)  ? Compression::kLzma
                               : Compression::kNone;
}

std::unique_ptr<MemberDecoder> CompressedText::NewDecoder() const {
  switch (compression_) {
    case Compression::kBzip2:
      return NewBzip2Decoder();
    case Compression::kXz:
      return NewLzmaDecoder(LzmaFormat::kXz, window_size_bytes_max_);
    case Compression::kLzip:
      return NewLzmaDecoder(LzmaFormat::kLzip, window_size_bytes_max_);
    case Compression::kLzma:
      return NewLzmaDecoder(LzmaFormat::kLzma, window_size_bytes_max_);
    case Compression::kLz4:
      return NewLz4Decoder();
    case Compression::kCompress:
      return NewLzwDecoder();
    case Compression::kNone:
    case Compression::kGzip:
    case Compression::kZstd:
      break;
  }
  return nullptr;
}

absl::StatusOr<std::unique_ptr<ByteStream>> CompressedText::OpenCompressed()
    const {
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<ByteStream> stored, open_());
  if (compression_ == Compression::kGzip) {
    return OpenGzipStream(std::move(stored), name_);
  }
  if (compression_ == Compression::kZstd) {
    return OpenZstdStream(std::move(stored), name_, dictionary_,
                          window_size_bytes_max_);
  }
  std::unique_ptr<MemberDecoder> decoder = NewDecoder();
  if (decoder == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat(name_, ": no memory to decompress it"));
  }
  return std::make_unique<MemberStream>(std::move(stored), name_,
                                        std::move(decoder));
}

absl::StatusOr<std::unique_ptr<ByteStream>> CompressedText::Open() const {
  if (!is_compressed()) {
    return open_();
  }
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<ByteStream> text, OpenCompressed());
  return std::make_unique<BoundedStream>(std::move(text), name_,
                                         size_bytes_max_);
}

}  // namespace quire
