// SPDX-License-Identifier: GPL-3.0-or-later
//
// WARC 1.0 and 1.1, and its predecessor ARC, by a parser of our own.
#ifndef QUIRE_SERVER_INGEST_SOURCES_CRAWL_WARC_SOURCE_H_
#define QUIRE_SERVER_INGEST_SOURCES_CRAWL_WARC_SOURCE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"
#include "server/ingest/sources/source.h"
#include "server/ingest/sources/streams/byte_stream.h"

namespace quire {

// Start of every WARC record.
inline constexpr absl::string_view kWarcMagic = "WARC/";

bool IsWarcStart(absl::string_view text);

enum class RecordFormat { kWarc, kArc };

// Recognises the start of a record.
ByteStream::IsPartStart RecordStart(RecordFormat format);

// Reaction of a reader to damage.
enum class WarcDamage { kStop, kSkip };

// The records of a WARC or ARC, as documents.
//
// WARC: a document's bytes are the whole record, from "WARC/1." to the two line
// ends after the block: all documents together are the WARC, byte for byte. Id:
// WARC-Target-URI; for records without one (warcinfo), WARC-Record-ID; for
// records without either, "warc-record:N", where N is the record's number in
// the file from 0. Record type: WARC-Type. Media type: for responses over HTTP,
// the Content-Type of the HTTP header (empty if it has none); for all others,
// the record's Content-Type.
//
// ARC: a document's bytes are the whole record, from its header line to the
// line ends, at most 64, before the next one. The first record, of the URL
// filedesc://, describes the file and is a document too. Id: the URL. Time: the
// date of the header line. Media type: as in a WARC. There is no record type,
// and the size is not known in advance.
//
// A record is read in pieces and may have any length. Its header, and the
// searched part of the HTTP header, has at most 1 MiB. Line ends may be CRLF,
// as in the standard, or LF alone throughout a record.
// Errors: DataLoss for any violation: garbage between records, a missing or
//   wrong Content-Length, a truncated file. The message has the record's number
//   and offset in the uncompressed file.
//
// With WarcDamage::kSkip, and in a WARC that is compressed in members, reading
// continues after such an error with the records of later members. The message
// then ends with the skipped range; records are counted from there.
//
// Thread-compatible.
class WarcReader final : public SourceReader {
 public:
  // `name` is for messages.
  WarcReader(std::unique_ptr<ByteStream> stream, std::string name,
             RecordFormat format = RecordFormat::kWarc,
             WarcDamage damage = WarcDamage::kStop);

  absl::StatusOr<std::optional<SourceDocument>> Next() override;
  std::string Place() const override;
  absl::StatusOr<size_t> Read(MutableByteView out) override;
  absl::StatusOr<uint64_t> Skip(uint64_t size_bytes) override;

  std::shared_ptr<const TextCheck> AwaitedCheck() const override {
    return stream_->AwaitedCheck(record_offset_ + record_position_);
  }

  bool CanContinue() const override { return next_part_offset_.has_value(); }

 private:
  absl::StatusOr<std::optional<SourceDocument>> NextRecord();
  absl::StatusOr<size_t> ReadRecord(MutableByteView out);
  absl::StatusOr<uint64_t> SkipRecord(uint64_t size_bytes);
  // Skips the damaged part if possible.
  absl::Status PassDamage(const absl::Status& status);
  // Begins the part after it.
  void StartPart();
  // Reads until `size` bytes are buffered or the stream ends. An error of the
  // stream ends it too; bytes read before stay usable.
  void Fill(size_t size);
  // Reads the header at the front of the buffer; returns its size.
  absl::StatusOr<size_t> FindHeader();
  absl::Status CheckMagic();
  // The size of the header at the front of the buffer, if all of it is there.
  std::optional<size_t> HeaderSize() const;
  // Returns the Content-Type of the HTTP response after the header, if it is
  // one.
  std::optional<std::string> PeekHttpMediaType(size_t header_size,
                                               uint64_t content_length);
  void Consume(size_t size);
  // Checks what follows the block.
  absl::Status CheckRecordEnd();
  absl::Status FindArcRecordEnd();
  absl::Status Malformed(absl::string_view what) const;
  // Returns the error for a record of which the file has `size_bytes`.
  absl::Status EndsAfter(uint64_t size_bytes) const;
  // Returns the error for missing text: the cause, if the stream failed.
  absl::Status Truncated(absl::string_view what) const;

  ByteView buffered() const {
    return ByteView(buffer_).subspan(begin_, end_ - begin_);
  }

  const std::unique_ptr<ByteStream> stream_;
  const std::string name_;
  const RecordFormat format_;
  const WarcDamage damage_;
  std::vector<uint8_t> buffer_;
  // The unread part of buffer_.
  size_t begin_ = 0;
  size_t end_ = 0;
  bool stream_ended_ = false;
  absl::Status stream_status_;
  // Offset in the file of the part after the damage that the last call met.
  std::optional<uint64_t> next_part_offset_;
  // Offset of the part after the previous damage.
  std::optional<uint64_t> part_offset_;

  uint64_t record_count_ = 0;
  // Offset of the current record in the uncompressed part.
  uint64_t record_offset_ = 0;
  // End of its block, in the record.
  uint64_t block_end_ = 0;
  // In an ARC: the maximum until block_end_ is reached.
  uint64_t record_size_bytes_ = 0;
  uint64_t record_position_ = 0;
  // "\r\n\r\n" or "\n\n": the last bytes of the current record of a WARC.
  absl::string_view record_end_;
};

// `open` starts a pass over the uncompressed text of the WARC or ARC in `file`.
std::unique_ptr<Source> MakeWarcSource(std::shared_ptr<const InputFile> file,
                                       OpenStream open, RecordFormat format,
                                       WarcDamage damage);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_CRAWL_WARC_SOURCE_H_
