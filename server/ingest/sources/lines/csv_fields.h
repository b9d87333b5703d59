// SPDX-License-Identifier: GPL-3.0-or-later
//
// CSV (RFC 4180): fields between commas or another delimiter, perhaps in
// quotes.
#ifndef QUIRE_SERVER_INGEST_SOURCES_LINES_CSV_FIELDS_H_
#define QUIRE_SERVER_INGEST_SOURCES_LINES_CSV_FIELDS_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include "server/ingest/sources/lines/record_field.h"

namespace quire {

struct CsvDialect {
  // Any byte except a quote and line ends.
  char delimiter = ',';
  // LF, perhaps after a CR, or CR alone.
  char line_end = '\n';
};

// Returns the size of the record at the start of `text`, with its line end;
// nullopt if it does not end in `text`. Line ends in quoted fields do not end
// it. Thread-safe.
std::optional<size_t> CsvRecordSize(absl::string_view text,
                                    const CsvDialect& dialect = {});

// Returns the delimiter that a first line such as "sep=;" sets for the file, as
// spreadsheets write it; nullopt for any other line. Thread-safe.
std::optional<char> CsvDelimiterOf(absl::string_view line);

// Returns the fields of `record`, with or without its line end, without quotes.
// A quote in a field that does not begin with one is itself. Thread-safe.
// Errors: InvalidArgument  a quote that is not closed, text after a closing
//                          quote, or blanks before the first one. The message
//                          has the number of the field from 1.
absl::StatusOr<std::vector<std::string>> SplitCsvRecord(
    absl::string_view record, const CsvDialect& dialect = {});

// Sets each of `fields` from its column. `column_count` is that of the header.
// Thread-safe.
// Errors: InvalidArgument  as SplitCsvRecord(), or another number of fields;
//                          `fields` are then unspecified.
absl::Status ReadCsvFields(absl::string_view record, size_t column_count,
                           absl::Span<RecordField> fields,
                           const CsvDialect& dialect = {});

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_LINES_CSV_FIELDS_H_
