// SPDX-License-Identifier: GPL-3.0-or-later
//
// libarchive, reading from our streams.
#ifndef QUIRE_SERVER_INGEST_SOURCES_LIBARCHIVE_INPUT_H_
#define QUIRE_SERVER_INGEST_SOURCES_LIBARCHIVE_INPUT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "server/ingest/sources/byte_stream.h"

struct archive;

namespace quire {

inline constexpr size_t kTarBlockSizeBytes = 512;

// Owns a libarchive reader together with the stream it reads from.
// Thread-compatible.
class LibarchiveInput {
 public:
  enum class Format {
    kTar,
    kZip,
    // No format: the bytes that come out of the decompression filters.
    kDecompressed,
  };

  // `name` is for messages. `seekable`, if not null, is the same object as
  // `stream`; with it zips are read by their central directory.
  // Errors: DataLoss, Unavailable  libarchive refuses the stream's start.
  //         ResourceExhausted      no memory.
  static absl::StatusOr<std::unique_ptr<LibarchiveInput>> Open(
      Format format, std::unique_ptr<ByteStream> stream, FileStream* seekable,
      std::string name);
  ~LibarchiveInput();
  LibarchiveInput(const LibarchiveInput&) = delete;
  LibarchiveInput& operator=(const LibarchiveInput&) = delete;

  archive* get() const { return archive_; }

  // For a call on get() that failed: the stream's own error if that was the
  // reason, else DataLoss with libarchive's words.
  absl::Status Failure(const std::string& place) const;

  // After the last entry of a tar: false if the stream just stopped, without
  // the zero blocks that end a tar.
  bool SawTarEnd() const;

 private:
  struct Callbacks;

  LibarchiveInput(Format format, std::unique_ptr<ByteStream> stream,
                  FileStream* seekable, std::string name);
  absl::StatusOr<size_t> FillBuffer();

  const std::unique_ptr<ByteStream> stream_;
  FileStream* const seekable_;
  const std::string name_;
  const bool is_zip_;
  archive* archive_ = nullptr;
  std::vector<uint8_t> buffer_;
  // The last bytes that the stream returned, at most one tar block.
  std::vector<uint8_t> tail_;
  bool at_end_ = false;
  absl::Status stream_status_;
};

// The text of a file that is compressed in one of the ways libarchive knows
// (gzip excepted: see GzipStream).
class DecompressedStream final : public ByteStream {
 public:
  // Returns null where `compressed` does not begin like any of them.
  // Errors: as LibarchiveInput::Open().
  static absl::StatusOr<std::unique_ptr<DecompressedStream>> Create(
      std::unique_ptr<ByteStream> compressed, const std::string& name);

  // Errors: DataLoss  damaged or truncated.
  absl::StatusOr<size_t> Read(MutableByteView out) override;

 private:
  explicit DecompressedStream(std::unique_ptr<LibarchiveInput> input)
      : input_(std::move(input)) {}

  const std::unique_ptr<LibarchiveInput> input_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_LIBARCHIVE_INPUT_H_
