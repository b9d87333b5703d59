// SPDX-License-Identifier: GPL-3.0-or-later
//
// libarchive on ByteStream, for its formats tar and zip. Its decompression
// filters are not used: some run programs, and most neither verify checksums
// nor report bytes after the end.
#ifndef QUIRE_SERVER_INGEST_SOURCES_LIBARCHIVE_INPUT_H_
#define QUIRE_SERVER_INGEST_SOURCES_LIBARCHIVE_INPUT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "server/ingest/sources/streams/byte_stream.h"
#include "server/ingest/sources/zip_stream.h"

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
  };

  // `name` is for messages. `zip`, if not null, is the same object as `stream`;
  // with it zips are read by their central directory.
  // Errors: DataLoss, Unavailable  libarchive rejects the stream's start.
  //         ResourceExhausted      no memory.
  static absl::StatusOr<std::unique_ptr<LibarchiveInput>> Open(
      Format format, std::unique_ptr<ByteStream> stream, ZipStream* zip,
      std::string name);
  ~LibarchiveInput();
  LibarchiveInput(const LibarchiveInput&) = delete;
  LibarchiveInput& operator=(const LibarchiveInput&) = delete;

  archive* get() const { return archive_; }

  // Returns the error of a failed call on get(): the stream's own if it was the
  // cause, otherwise DataLoss with libarchive's text.
  absl::Status Failure(const std::string& place) const;

  // ByteStream::AwaitedCheck() of the bytes that libarchive has used.
  std::shared_ptr<const TextCheck> AwaitedCheck() const;

  // Reads what follows the last entry of a zip that is not seekable: its list
  // of entries, and the checksums of a compressed file.
  // Errors: DataLoss     the list does not end the stream: it is missing, or
  //                      other text follows.
  //         Unavailable  the stream cannot be read.
  absl::Status CheckZipEnd();

  // After the last entry of a tar: false if the stream ended without the zero
  // blocks that end a tar.
  bool SawTarEnd() const;

 private:
  struct Callbacks;

  LibarchiveInput(Format format, std::unique_ptr<ByteStream> stream,
                  ZipStream* zip, std::string name);
  absl::StatusOr<size_t> FillBuffer();

  const std::unique_ptr<ByteStream> stream_;
  ZipStream* const zip_;
  const std::string name_;
  const bool is_zip_;
  archive* archive_ = nullptr;
  std::vector<uint8_t> buffer_;
  // Size of the last piece of the stream, in buffer_, and of all that was read
  // or skipped.
  size_t buffer_size_ = 0;
  uint64_t passed_bytes_ = 0;
  // The last bytes of the stream, at most one tar block.
  std::vector<uint8_t> tail_;
  bool at_end_ = false;
  absl::Status stream_status_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_LIBARCHIVE_INPUT_H_
