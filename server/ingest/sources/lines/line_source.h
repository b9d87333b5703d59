// SPDX-License-Identifier: GPL-3.0-or-later
//
// The lines of files, as documents: logs, CSV and JSON Lines.
#ifndef QUIRE_SERVER_INGEST_SOURCES_LINES_LINE_SOURCE_H_
#define QUIRE_SERVER_INGEST_SOURCES_LINES_LINE_SOURCE_H_

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
#include "server/ingest/sources/lines/csv_fields.h"
#include "server/ingest/sources/lines/record_field.h"
#include "server/ingest/sources/source.h"
#include "server/ingest/sources/streams/byte_stream.h"

namespace quire {

// Upper bound on a record whose fields are read. It is held in memory.
inline constexpr size_t kRecordSizeBytesMax = size_t{16} << 20;

// Splits the documents of `reader`, called files here, into lines.
//
// A line is a document, with the line feed that ends it: the lines of a file
// together are the file, byte for byte. What follows the last line feed is a
// line too. Id: FILE:LINE, where FILE is the id of the file, and LINE counts
// from 1. A file that is compressed is decompressed first.
//
// With a field in LineSplit, files are JSON Lines if the first byte that is
// neither white space nor a record separator (RFC 7464) is {, else CSV with a
// header line, perhaps after a line "sep=" and a delimiter. A CSV record may
// contain line ends in quoted fields: it is one document, of the number of its
// first line. After a quote that is not closed within kRecordSizeBytesMax,
// every line of the file is a record. If a JSON file begins with a record
// separator, these separate its records, which may have line ends. In a file
// that has carriage returns and no line feed at its start, carriage returns end
// lines. A file in UTF-16, by its byte order mark, becomes UTF-8, with a note.
//
// Id: the value of the field. Records without it keep FILE:LINE: the header
// line, with a note where it is repeated, and empty lines silently; those that
// are malformed or where the field is missing, empty, neither a string nor a
// number, or longer than an id may be, with a note of kBadRecord. JSON that is
// malformed and whose fields can be read only gets a note of kTolerated
// (json_fields.h).
//
// LineSplit::time_field is the capture time, by the same rules. Values of
// LineSplit::fields may be missing or null, and are of any type.
//
// With LineSplit::text_field a document is the value of that field, the header
// line and empty lines are not documents, and records without the value are
// documents as they are, with a note.
//
// Lines may have any length; those that are not kept in memory have no size in
// advance. Errors: DataLoss         damaged compressed data.
//                  InvalidArgument  a CSV without the column; a JSON array, a
//                                   Parquet file or UTF-32, with a field; at
//                                   the end, records of which none has a field.
// Thread-compatible.
class LineReader final : public SourceReader {
 public:
  // `name` is for messages. `id_rules`, which may be null, apply to values of
  // fields. Sizes are as in SourceOptions.
  LineReader(std::unique_ptr<SourceReader> reader, std::string name,
             LineSplit split, std::shared_ptr<const IdRules> id_rules,
             std::optional<uint64_t> input_size_bytes_max,
             uint64_t window_size_bytes_max = kWindowSizeBytesDefault);

  absl::StatusOr<std::optional<SourceDocument>> Next() override;
  std::string Place() const override;
  absl::StatusOr<size_t> Read(MutableByteView out) override;
  absl::StatusOr<uint64_t> Skip(uint64_t size_bytes) override;
  std::shared_ptr<const TextCheck> AwaitedCheck() const override;
  bool CanContinue() const override;
  SkippedEntries skipped() const override;
  void Listen(NoteListener listener) override;

 private:
  enum class Format { kLines, kJsonLines, kCsv };
  // The bytes of the current file.
  class FileText;

  // Starts to read the next document of `reader_`; false after the last.
  absl::StatusOr<bool> OpenFile();
  // Returns the index of a field in `fields_`, and adds it if it is new.
  size_t FieldIndex(const std::string& name, bool takes_any);
  // Decompresses the file if it is compressed.
  absl::Status Decompress(const SourceDocument& file);
  // Converts UTF-16, and finds out how the file ends its lines.
  absl::Status PrepareText();
  absl::Status DetectFormat();
  // Errors: InvalidArgument  there were records, and none had one of the
  // fields.
  absl::Status CheckFieldsFound();
  // True if the line sets the delimiter.
  bool TakeDelimiter(absl::string_view record);
  absl::Status ReadCsvHeader(absl::string_view record);
  bool RepeatsHeader(absl::string_view record) const;
  // Finds the next record; false at the end of the file.
  absl::StatusOr<bool> FindRecord();
  absl::Status PassRecord();
  // Describes the record; nullopt if it is not a document.
  absl::StatusOr<std::optional<SourceDocument>> DescribeRecord();
  void ApplyFields(SourceDocument& document);
  // Returns the problem if the value is unusable; empty otherwise.
  std::string ApplyRole(size_t role, SourceDocument& document);
  std::string ApplyId(const RecordField& field, SourceDocument& document);
  // Sets the values of LineSplit::fields.
  void ApplyValues(SourceDocument& document);
  void NoteBadRecord(absl::string_view problem);
  void NoteOfFile(EntryNote note, absl::string_view text);
  absl::Status FileError(absl::string_view problem) const;
  // Returns the error of `stream_` after the lines before it, which says from
  // which line on the file is left out; OK if it has none.
  absl::Status RestError() const;
  // Drops the current file after an error.
  void LeaveFile();
  // Reads until the buffer is full or the file ends.
  void Fill();

  absl::string_view buffered() const {
    return AsText(buffer_).substr(begin_, end_ - begin_);
  }

  const std::unique_ptr<SourceReader> reader_;
  const std::string name_;
  const LineSplit split_;
  const std::shared_ptr<const IdRules> id_rules_;
  const std::optional<uint64_t> input_size_bytes_max_;
  const uint64_t window_size_bytes_max_;

  // Null between files. `file_text_` is what it reads at the bottom.
  std::unique_ptr<ByteStream> stream_;
  FileText* file_text_ = nullptr;
  std::string file_id_;
  Format format_ = Format::kLines;
  // Quoted fields of the CSV, or records of RFC 7464, may contain line feeds.
  bool spans_lines_ = false;
  // The header line, without its end, and its number of columns.
  size_t column_count_ = 0;
  std::string header_;
  CsvDialect dialect_;
  // The fields of `split_`, each once.
  std::vector<RecordField> fields_;
  // Uses of fields that records must have: what for, and the index in
  // `fields_`.
  enum class Use { kId, kText, kTime };

  struct Role {
    Use use;
    size_t field;
  };

  std::vector<Role> roles_;
  // Indexes in `fields_` of LineSplit::fields.
  std::vector<size_t> value_fields_;
  // Records of all files, and for each role those with a usable value.
  uint64_t record_count_ = 0;
  std::vector<uint64_t> usable_counts_;
  // Of the first record that lacks a field.
  std::string first_problem_;
  std::string tolerated_;

  std::vector<uint8_t> buffer_;
  // The unread part of buffer_.
  size_t begin_ = 0;
  size_t end_ = 0;
  bool stream_ended_ = false;
  // Bytes of `stream_` up to the end of the buffer.
  uint64_t read_bytes_ = 0;
  // `stream_` decompresses the file.
  bool is_compressed_ = false;
  absl::Status stream_status_;
  // The last error was not one of `reader_`.
  bool can_continue_ = false;

  // Number of the current record's first line, and of the one after it.
  uint64_t line_ = 0;
  uint64_t next_line_ = 1;
  // Unread bytes of the current record at the front of the buffer.
  size_t record_rest_ = 0;
  // The record continues after them, up to a line end.
  bool is_open_ = false;
  // Set if the document is the value of a field; its first unread byte.
  bool has_text_ = false;
  std::string text_;
  size_t text_begin_ = 0;
};

// Errors: InvalidArgument  `source` has records instead of lines.
absl::Status CheckHasLines(const Source& source);

// The lines of the documents of `source`. REQUIRES: options.split, and that
// CheckHasLines() allows it.
std::unique_ptr<Source> MakeLineSource(std::unique_ptr<Source> source,
                                       const SourceOptions& options);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_LINES_LINE_SOURCE_H_
