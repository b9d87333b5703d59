// SPDX-License-Identifier: GPL-3.0-or-later
//
// Cuts the text of a file into records.
#ifndef QUIRE_SERVER_INGEST_SOURCES_LINES_RECORD_CUTTER_H_
#define QUIRE_SERVER_INGEST_SOURCES_LINES_RECORD_CUTTER_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"
#include "server/ingest/sources/lines/csv_fields.h"
#include "server/ingest/sources/lines/line_text.h"

namespace quire {

// Upper bound on a record whose fields are read. It is held in memory.
inline constexpr size_t kRecordSizeBytesMax = size_t{16} << 20;

// White space, and the separator of records of RFC 7464.
inline constexpr absl::string_view kRecordBlanks = " \t\r\n\x1E";

// Returns the text after a byte order mark of UTF-8, if it begins with one.
absl::string_view WithoutByteOrderMark(absl::string_view text);

// Form of the records of a file.
struct LineFormat {
  enum class Kind {
    // Lines whose fields are not read.
    kLines,
    kJsonLines,
    kCsv,
  };

  Kind kind = Kind::kLines;
  CsvDialect dialect = {};
  // Quoted fields of a CSV, or records of RFC 7464, may contain line ends.
  bool spans_lines = false;
};

// The records of all bytes of a file, one after the other. A record ends with
// its line end, the last one perhaps without. Records of kLines have any
// length; others are open, see below, past kRecordSizeBytesMax.
// Thread-compatible.
class RecordCutter {
 public:
  // `text` must outlive this.
  explicit RecordCutter(LineText& text) : text_(text) {}

  // Begins with the file that `text` has open. REQUIRES: nothing was taken.
  void Start(const LineFormat& format);

  const LineFormat& format() const { return format_; }

  // Sets the delimiter of a CSV for the records that follow.
  void SetDelimiter(char delimiter) { format_.dialect.delimiter = delimiter; }

  // Passes what was not read of the record, and finds the next one; false at
  // the end of the file. Errors: those of the text; the message says from which
  // line on the file is left out.
  absl::StatusOr<bool> Next();

  // Number of the first line of the record, from 1.
  uint64_t line() const { return line_; }

  // Bytes of the record that are held and were not read: all of it after Next()
  // unless it is open. Valid until the next call that is not const.
  absl::string_view held() const {
    return text_.buffered().substr(0, held_size_bytes_);
  }

  // True if the record continues after held(), up to a line end.
  bool is_open() const { return is_open_; }

  // held() without the byte order mark of the file. REQUIRES: no byte of the
  // record was read.
  absl::string_view record() const {
    return line_ == 1 ? WithoutByteOrderMark(held()) : held();
  }

  // Reads or skips bytes of the record. Skip() takes only bytes of held(). See
  // SourceReader. Errors: as Next().
  absl::StatusOr<size_t> Read(MutableByteView out);
  size_t Skip(uint64_t size_bytes);

 private:
  // Passes the rest of the record.
  absl::Status Pass();
  // Sets the record to the first one of `text`, after `mark_size_bytes`; false
  // if it does not end there.
  bool TakeEnded(absl::string_view text, size_t mark_size_bytes);
  // Sets the record to all of `text`, which nothing follows in the buffer or
  // that is as long as a record may be. False: its quotes or separators are not
  // closed, so that from now on each line is a record.
  bool TakeUnended(absl::string_view text, size_t mark_size_bytes);
  // Error of the text after the records so far.
  absl::Status RestError() const;

  LineText& text_;
  LineFormat format_;
  // Number of the record's first line, and of the one after it.
  uint64_t line_ = 0;
  uint64_t next_line_ = 1;
  size_t held_size_bytes_ = 0;
  bool is_open_ = false;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_LINES_RECORD_CUTTER_H_
