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

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"
#include "server/ingest/sources/id_rules.h"
#include "server/ingest/sources/lines/field_roles.h"
#include "server/ingest/sources/lines/line_text.h"
#include "server/ingest/sources/lines/record_cutter.h"
#include "server/ingest/sources/source.h"
#include "server/ingest/sources/streams/byte_stream.h"

namespace quire {

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
  // Starts to read the next document of `reader_`; false after the last.
  absl::StatusOr<bool> OpenFile();
  // Drops the current file after an error.
  void LeaveFile();
  // Describes the record; nullopt if it is not a document.
  absl::StatusOr<std::optional<SourceDocument>> DescribeRecord();
  absl::Status ReadCsvHeader(absl::string_view record);
  // Takes the delimiter that the line sets; false if it sets none.
  bool TakeDelimiter(absl::string_view record);
  void ApplyFields(SourceDocument& document);
  // "NAME: PLACE", of the file or the record.
  std::string FileName() const;
  std::string RecordName() const;
  void NoteOfFile(EntryNote note, absl::string_view text);
  void NoteOfRecord(EntryNote note, absl::string_view text);

  const std::unique_ptr<SourceReader> reader_;
  const std::string name_;
  const LineSplit split_;
  FieldRoles fields_;
  LineText text_;
  // Uses `text_`.
  RecordCutter records_;
  std::string file_id_;
  // Of the first record that lacks a field.
  std::string first_problem_;
  // Set if the document is the value of a field; its first unread byte.
  std::optional<std::string> value_;
  size_t value_begin_ = 0;
  // The last error was not one of `reader_`.
  bool can_continue_ = false;
};

// Errors: InvalidArgument  `source` has records instead of lines.
absl::Status CheckHasLines(const Source& source);

// The lines of the documents of `source`. REQUIRES: options.split, and that
// CheckHasLines() allows it.
std::unique_ptr<Source> MakeLineSource(std::unique_ptr<Source> source,
                                       const SourceOptions& options);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_LINES_LINE_SOURCE_H_
