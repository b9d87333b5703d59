// SPDX-License-Identifier: GPL-3.0-or-later
//
// The text of a file, or of a member of a container, that may be compressed as
// a whole.
#ifndef QUIRE_SERVER_INGEST_SOURCES_COMPRESSED_TEXT_H_
#define QUIRE_SERVER_INGEST_SOURCES_COMPRESSED_TEXT_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "server/ingest/sources/streams/byte_stream.h"
#include "server/ingest/sources/streams/member_stream.h"
#include "server/ingest/sources/streams/zstd_dictionary.h"

namespace quire {

// Detects the compression by the first bytes. Immutable, thread-safe.
class CompressedText {
 public:
  // `open` starts a pass over the stored bytes; those of gzip and zstd must be
  // able to Seek() for SkipPart(). `name` is for messages. `size_bytes_max`
  // bounds decompressed text, `window_size_bytes_max` the memory for windows
  // and dictionaries. Errors: DataLoss  the dictionary of a zstd file is
  // damaged; and those of the
  //                   stream.
  static absl::StatusOr<CompressedText> Detect(
      OpenStream open, std::string name, uint64_t size_bytes_max,
      uint64_t window_size_bytes_max = kWindowSizeBytesDefault);

  bool is_compressed() const { return compression_ != Compression::kNone; }

  // Starts a pass over the text: a MemberStream if it is compressed. Errors: as
  // ByteStream::Read(), ResourceExhausted for no memory.
  absl::StatusOr<std::unique_ptr<ByteStream>> Open() const;

 private:
  enum class Compression {
    kNone,
    kGzip,
    kZstd,
    kBzip2,
    kXz,
    kLzip,
    kLzma,
    kLz4,
    kCompress
  };

  CompressedText(OpenStream open, std::string name, uint64_t size_bytes_max,
                 uint64_t window_size_bytes_max)
      : open_(std::move(open)),
        name_(std::move(name)),
        size_bytes_max_(size_bytes_max),
        window_size_bytes_max_(window_size_bytes_max) {}

  absl::StatusOr<Compression> DetectCompression() const;
  absl::StatusOr<std::unique_ptr<ByteStream>> OpenCompressed() const;
  // Null without memory.
  std::unique_ptr<MemberDecoder> NewDecoder() const;

  OpenStream open_;
  std::string name_;
  uint64_t size_bytes_max_;
  uint64_t window_size_bytes_max_;
  Compression compression_ = Compression::kNone;
  // Dictionary of a zstd file; null if the file does not begin with one.
  std::shared_ptr<const ZstdDictionary> dictionary_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_COMPRESSED_TEXT_H_
