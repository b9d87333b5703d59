// SPDX-License-Identifier: GPL-3.0-or-later
//
// The records of a WARC 1.0 or 1.1, or of its predecessor ARC, by a parser of
// our own.
#ifndef QUIRE_SERVER_INGEST_SOURCES_CRAWL_WARC_READER_H_
#define QUIRE_SERVER_INGEST_SOURCES_CRAWL_WARC_READER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"
#include "server/ingest/sources/crawl/record_search.h"
#include "server/ingest/sources/crawl/warc_header.h"
#include "server/ingest/sources/source.h"
#include "server/ingest/sources/streams/byte_stream.h"

namespace quire {

// Start of every WARC record.
inline constexpr absl::string_view kWarcMagic = "WARC/";

bool IsWarcStart(absl::string_view text);

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
// line ends before the next one. The first record, of the URL filedesc://,
// describes the file: its type is "warcinfo", that of all others "response".
// Id: the URL. Time: the date of the header line. Media type: as in a WARC.
//
// A record is read in pieces and may have any length. Its header, and the
// searched part of the HTTP header, has at most 1 MiB. Line ends may be CRLF,
// as in the standard, or LF alone throughout a record.
//
// Records that every reader accepts are read with a note
// (EntryNote::kIrregularRecord), which leaves all bytes in the record:
// - Other line ends after the block than two; in an ARC that is no fault.
// - A Content-Length of at most 1 MiB (8 MiB with WarcDamage::kSkip) that is
// too
//   small, if the next record begins within 64 KiB after the block, or the file
//   ends with that line.
// - One that is too large, if the record is alone in its gzip member or zstd
//   frame: the record ends where that does.
// - Other faults of the header (WarcHeader::oddities). Without a Content-Length
//   the record ends with its member, where the next one begins, or with the
//   file, if that is within 1 MiB.
//
// Errors: DataLoss for any other violation: garbage between records, a missing
//   or wrong Content-Length, a truncated file. The message has the record's
//   number and offset in the uncompressed file.
//
// With WarcDamage::kSkip reading continues after such an error: with the first
// record of a later member if compressed text is damaged, else with the next
// record that begins a line and has a faultless header. This is searched from
// the damaged record's header on if the file is not compressed or the block has
// at most 8 MiB, else from where the damage was found. The message then ends
// with the skipped range.
//
// Thread-compatible.
class WarcReader final : public SourceReader {
 public:
  // `name` is for messages. `deposit` is the file that all text of the stream
  // is of; null if it is not a file of its own.
  WarcReader(std::unique_ptr<ByteStream> stream, std::string name,
             RecordFormat format = RecordFormat::kWarc,
             WarcDamage damage = WarcDamage::kStop,
             std::shared_ptr<const DepositSource> deposit = nullptr);

  absl::StatusOr<std::optional<SourceDocument>> Next() override;
  std::string Place() const override;
  absl::StatusOr<size_t> Read(MutableByteView out) override;
  absl::StatusOr<uint64_t> Skip(uint64_t size_bytes) override;

  std::shared_ptr<const TextCheck> AwaitedCheck() const override {
    return stream_->AwaitedCheck(record_offset_ + record_position_);
  }

  bool CanContinue() const override { return can_continue_; }

 private:
  absl::StatusOr<std::optional<SourceDocument>> NextRecord();
  // Parses the header at the front of the buffer.
  absl::StatusOr<WarcHeader> ReadHeader();
  absl::StatusOr<size_t> ReadRecord(MutableByteView out);
  absl::StatusOr<uint64_t> SkipRecord(uint64_t size_bytes);

  // Skips the damaged text or part if possible.
  absl::Status PassDamage(const absl::Status& status);
  absl::Status PassPart(const absl::Status& status, uint64_t text_offset);
  // Moves to the next record in the text; false if there is none. An error is
  // that of the stream.
  absl::StatusOr<bool> FindNextRecord();
  // Returns how much of the buffer belongs to the independently compressed part
  // that begins at byte `part_offset` of the stream, or to a later one, which
  // `part_offset` then names.
  size_t SizeInPart(uint64_t& part_offset) const;
  // Begins the part after the damaged one.
  void StartPart();

  // Reads until `size` bytes are buffered or the stream ends. An error of the
  // stream ends it too; bytes read before stay usable.
  void Fill(size_t size);
  absl::StatusOr<size_t> ReadStream(MutableByteView out);
  void Consume(size_t size);

  // Reads the header at the front of the buffer; returns its size.
  absl::StatusOr<size_t> FindHeader();
  absl::Status CheckMagic();
  // The size of the header at the front of the buffer, if all of it is there.
  std::optional<size_t> HeaderSize() const;
  // Returns the Content-Type of the HTTP response after the header, if it is
  // one.
  std::optional<std::string> PeekHttpMediaType(uint64_t content_length);
  // Returns the first `size_bytes` of the block; fewer if it or the stream
  // ends before.
  ByteView PeekBlock(size_t size_bytes);
  // Returns what an index of captures wants of the record.
  CrawlRecord DescribeRecord(const WarcHeader& header);

  // Finds the end of a record whose header has this fault in its length.
  absl::Status FindUnstatedEnd(absl::string_view fault);
  // If the whole record can be buffered, finds its end before it is read.
  absl::Status ExamineRecord();
  // Ends a large record with its member, if the next one begins a record.
  void ExamineMember();
  // The record has `size_bytes`, as its member, and not what its length says.
  void EndWithMember(uint64_t size_bytes);
  // The record is longer than its own member or than the file, or another
  // begins inside it. REQUIRES: as much of it is buffered as there is.
  absl::Status ExamineLength();
  // Finds the end of the record whose block ends at `at` in the buffer.
  absl::Status FindRecordEnd(size_t at);
  absl::Status TakeStrayText(size_t at, size_t gap);
  // Searches at least `size_max` bytes from `at` in the buffer on, unless the
  // stream ends; they are buffered.
  RecordSearch SearchAt(size_t at, bool at_line_start, size_t size_max);
  // The number of bytes of line ends at `at` in the buffer.
  size_t GapSize(size_t at);
  // True if a record begins there, or the stream ends without an error.
  bool BeginsRecord(size_t at);
  // True if the block ends at `at` in the buffer as it should.
  bool HasRecordEnd(size_t at);
  // Ends the record, whose block ends at `at` in the buffer, `tail_size` bytes
  // after that.
  absl::Status EndRecord(size_t at, size_t tail_size);

  void NoteIrregular(absl::string_view what);
  absl::Status Malformed(absl::string_view what) const;
  // Returns the error for a record of which the file has `size_bytes`.
  absl::Status EndsAfter(uint64_t size_bytes) const;
  // Returns the error for missing text: the cause, if the stream failed.
  absl::Status Truncated(absl::string_view what) const;

  ByteView buffered() const {
    return ByteView(buffer_).subspan(begin_, end_ - begin_);
  }

  absl::string_view text_at(size_t at) const {
    return AsText(buffered()).substr(std::min(at, end_ - begin_));
  }

  const std::unique_ptr<ByteStream> stream_;
  const std::string name_;
  const RecordFormat format_;
  const WarcDamage damage_;
  const std::shared_ptr<const DepositSource> deposit_;
  std::vector<uint8_t> buffer_;
  // The unread part of buffer_: the text from record_position_ on.
  size_t begin_ = 0;
  size_t end_ = 0;
  bool stream_ended_ = false;
  absl::Status stream_status_;
  // Next() continues after the last error.
  bool can_continue_ = false;
  // Offset in the file of the part after the damage that the last call met.
  std::optional<uint64_t> next_part_offset_;
  // Offset of the part after the previous damage.
  std::optional<uint64_t> part_offset_;

  uint64_t record_count_ = 0;
  // Offset of the current record in the uncompressed part.
  uint64_t record_offset_ = 0;
  // Size of its header; 0 if that cannot be read.
  size_t header_size_ = 0;
  // End of its block, in the record.
  uint64_t block_end_ = 0;
  // Its end was looked for before it is read.
  bool is_examined_ = false;
  // Unset until its end has been found.
  std::optional<uint64_t> record_size_bytes_ = 0;
  uint64_t record_position_ = 0;
  // "\r\n\r\n" or "\n\n": the last bytes of a record of a WARC.
  absl::string_view record_end_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_CRAWL_WARC_READER_H_
