// SPDX-License-Identifier: GPL-3.0-or-later
//
// libarchive on ByteStream.
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
#include "server/ingest/sources/streams/byte_stream.h"

struct archive;

namespace quire {

inline constexpr size_t kTarBlockSizeBytes = 512;

// Owns a libarchive reader and its input stream.
// Thread-compatible.
class LibarchiveInput {
 public:
  enum class Format {
    kTar,
    kZip,
    // No format: the output of the decompression filters.
    kDecompressed,
  };

  // `name` is for messages. `seekable`, if not null, is the same object as
  // `stream`; with it zips are read by their central directory, without the
  // comment after it.
  // Errors: DataLoss, Unavailable  libarchive rejects the stream's start.
  //         ResourceExhausted      no memory.
  static absl::StatusOr<std::unique_ptr<LibarchiveInput>> Open(
      Format format, std::unique_ptr<ByteStream> stream, FileStream* seekable,
      std::string name);
  ~LibarchiveInput();
  LibarchiveInput(const LibarchiveInput&) = delete;
  LibarchiveInput& operator=(const LibarchiveInput&) = delete;

  archive* get() const { return archive_; }

  // Returns the error of a failed call on get(): the stream's own if it was the
  // cause, otherwise DataLoss with libarchive's text.
  absl::Status Failure(const std::string& place) const;

  // After the last entry of a tar: false if the stream ended without the zero
  // blocks that end a tar.
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
  // With seekable_: libarchive sees the file up to here.
  uint64_t end_offset_ = 0;
  archive* archive_ = nullptr;
  std::vector<uint8_t> buffer_;
  // The last bytes of the stream, at most one tar block.
  std::vector<uint8_t> tail_;
  bool at_end_ = false;
  absl::Status stream_status_;
};

// Text of a file compressed in a format of libarchive (except gzip and zstd:
// see MemberStream).
class DecompressedStream final : public ByteStream {
 public:
  // Returns null if `compressed` begins like no such format.
  // Errors: as LibarchiveInput::Open().
  static absl::StatusOr<std::unique_ptr<DecompressedStream>> Create(
      std::unique_ptr<ByteStream> compressed, const std::string& name);

  // Errors: DataLoss  damaged or truncated.
  absl::StatusOr<size_t> Read(MutableByteView out) override;

 private:
  DecompressedStream(std::unique_ptr<LibarchiveInput> input, bool is_empty)
      : input_(std::move(input)), is_empty_(is_empty) {}

  const std::unique_ptr<LibarchiveInput> input_;
  // libarchive finds no entry then.
  const bool is_empty_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_LIBARCHIVE_INPUT_H_
