// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/compressed_text.h"

#include <array>
#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/bytes.h"
#include "codecs/base/endian.h"
#include "codecs/base/status_macros.h"
#include "server/ingest/sources/libarchive_input.h"
#include "server/ingest/sources/streams/gzip_stream.h"
#include "server/ingest/sources/streams/zstd_stream.h"

namespace quire {
namespace {

// Skippable frames searched for the first frame with text.
constexpr int kSkippableFrameCountMax = 1024;

// True if the first frame of `stream` that is not skippable is one of zstd.
absl::StatusOr<bool> IsZstd(ByteStream& stream) {
  for (int i = 0; i <= kSkippableFrameCountMax; ++i) {
    std::array<uint8_t, 8> start = {};
    QUIRE_ASSIGN_OR_RETURN(const size_t size, ReadFully(stream, start));
    const ByteView bytes = ByteView(start).first(size);
    if (IsZstdFrame(bytes)) {
      return true;
    }
    if (size < start.size() || !IsSkippableFrame(bytes)) {
      return false;
    }
    QUIRE_RETURN_IF_ERROR(stream
                              .Skip(LoadLittleEndian<uint32_t>(
                                  start.data() + kZstdMagicSizeBytes))
                              .status());
  }
  return false;
}

}  // namespace

absl::StatusOr<CompressedText> CompressedText::Detect(OpenStream open,
                                                      std::string name,
                                                      uint64_t size_bytes_max) {
  CompressedText text(std::move(open), std::move(name), size_bytes_max);
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
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<ByteStream> stored, open_());
  std::array<uint8_t, 3> start = {};
  QUIRE_ASSIGN_OR_RETURN(const size_t size, ReadFully(*stored, start));
  // The magic number includes deflate, gzip's only method: two bytes are too
  // few to call a file damaged if it does not decompress.
  if (size == start.size() && start[0] == 0x1F && start[1] == 0x8B &&
      start[2] == 8) {
    return Compression::kGzip;
  }
  QUIRE_ASSIGN_OR_RETURN(stored, open_());
  QUIRE_ASSIGN_OR_RETURN(const bool is_zstd, IsZstd(*stored));
  if (is_zstd) {
    return Compression::kZstd;
  }
  QUIRE_ASSIGN_OR_RETURN(stored, open_());
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<DecompressedStream> text,
                         DecompressedStream::Create(std::move(stored), name_));
  return text != nullptr ? Compression::kOther : Compression::kNone;
}

absl::StatusOr<std::unique_ptr<ByteStream>> CompressedText::OpenCompressed()
    const {
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<ByteStream> stored, open_());
  if (compression_ == Compression::kGzip) {
    return OpenGzipStream(std::move(stored), name_);
  }
  if (compression_ == Compression::kZstd) {
    return OpenZstdStream(std::move(stored), name_, dictionary_);
  }
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<DecompressedStream> text,
                         DecompressedStream::Create(std::move(stored), name_));
  if (text == nullptr) {
    return absl::UnavailableError(
        absl::StrCat(name_, ": was compressed when it was opened and is not ",
                     "now; do not change the input during a build"));
  }
  return text;
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
