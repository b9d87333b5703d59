// SPDX-License-Identifier: GPL-3.0-or-later
//
// CSV (RFC 4180): fields between commas, perhaps in quotes.
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

// Returns the size of the record at the start of `text`, with its line feed;
// nullopt if it does not end in `text`. Line feeds in quoted fields do not end
// it. Thread-safe.
std::optional<size_t> CsvRecordSize(absl::string_view text);

// Returns the fields of `record`, which may end in LF or CRLF, without quotes.
// Thread-safe.
// Errors: InvalidArgument  a quote that is not closed, or in a field that does
//                          not begin with one, or text after a closing quote.
//                          The message has the number of the field from 1.
absl::StatusOr<std::vector<std::string>> SplitCsvRecord(
    absl::string_view record);

// Sets each of `fields` from its column. `column_count` is that of the header.
// Thread-safe.
// Errors: InvalidArgument  as SplitCsvRecord(), or another number of fields;
//                          `fields` are then unspecified.
absl::Status ReadCsvFields(absl::string_view record, size_t column_count,
                           absl::Span<RecordField> fields);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_LINES_CSV_FIELDS_H_
