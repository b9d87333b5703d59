// SPDX-License-Identifier: GPL-3.0-or-later
//
// The bytes of a file that is split into records, through a buffer.
#ifndef QUIRE_SERVER_INGEST_SOURCES_LINES_LINE_TEXT_H_
#define QUIRE_SERVER_INGEST_SOURCES_LINES_LINE_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"
#include "server/ingest/sources/source.h"
#include "server/ingest/sources/streams/byte_stream.h"

namespace quire {

// Reads one document of a source after the other, called files here, and
// decompresses those that are compressed as a whole. Blocks on I/O.
// Thread-compatible.
class LineText {
 public:
  // What the buffer has at least.
  static constexpr size_t kBufferSizeBytes = size_t{256} << 10;

  // `reader` must outlive this. Sizes are as in SourceOptions.
  LineText(SourceReader& reader, std::optional<uint64_t> input_size_bytes_max,
           uint64_t window_size_bytes_max);
  ~LineText();

  // Starts to read the current document of the reader, and fills the buffer.
  // `name` is for messages. REQUIRES: the document was not read.
  // Errors: DataLoss, ResourceExhausted  it begins like a compressed file and
  //         cannot be decompressed. It may be open then.
  absl::Status Start(const SourceDocument& file, const std::string& name);
  void Close();

  bool is_open() const { return stream_ != nullptr; }

  // True if the last error of the file is one of the reader.
  // REQUIRES: is_open().
  bool has_reader_failed() const;

  // True if the open file is decompressed.
  bool is_compressed() const { return is_compressed_; }

  // Replaces the text by its conversion from UTF-16.
  // REQUIRES: nothing was taken of the file. Errors: those of the text.
  absl::Status ConvertUtf16(bool is_big_endian, const std::string& name);

  // Text that was read and not yet taken. Valid until the next call that is not
  // const.
  absl::string_view buffered() const {
    return AsText(buffer_).substr(begin_, end_ - begin_);
  }

  // REQUIRES: size_bytes <= buffered().size().
  void Take(size_t size_bytes) { begin_ += size_bytes; }

  // Reads until the buffer is full or the file ends, also by an error.
  void Fill();
  // The same; doubles the buffer, up to `size_bytes_max`, if it is full.
  void FillMore(size_t size_bytes_max);

  // True if buffered() is the rest of the file.
  bool at_end() const { return stream_ended_; }

  // Error that ended the text; OK if it has none. It comes after buffered().
  const absl::Status& status() const { return stream_status_; }

  // See SourceReader::AwaitedCheck(), for the text up to the first `size_bytes`
  // of buffered(). REQUIRES: is_compressed().
  std::shared_ptr<const TextCheck> AwaitedCheck(size_t size_bytes) const;

 private:
  // The stored bytes.
  class FileBytes;

  absl::Status DecompressIfCompressed(const SourceDocument& file,
                                      const std::string& name);

  SourceReader& reader_;
  const std::optional<uint64_t> input_size_bytes_max_;
  const uint64_t window_size_bytes_max_;
  // Null between files. `file_bytes_` is what it reads at the bottom.
  std::unique_ptr<ByteStream> stream_;
  FileBytes* file_bytes_ = nullptr;
  bool is_compressed_ = false;
  std::vector<uint8_t> buffer_;
  // The unread part of buffer_.
  size_t begin_ = 0;
  size_t end_ = 0;
  bool stream_ended_ = false;
  absl::Status stream_status_;
  // Bytes of `stream_` up to the end of the buffer.
  uint64_t read_bytes_ = 0;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_LINES_LINE_TEXT_H_
