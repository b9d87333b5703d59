// SPDX-License-Identifier: GPL-3.0-or-later
//
// Finds out how a file has its records: as lines, JSON Lines or CSV.
#ifndef QUIRE_SERVER_INGEST_SOURCES_LINES_FORMAT_DETECTION_H_
#define QUIRE_SERVER_INGEST_SOURCES_LINES_FORMAT_DETECTION_H_

#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "server/ingest/sources/lines/line_text.h"
#include "server/ingest/sources/lines/record_cutter.h"
#include "server/ingest/sources/source.h"

namespace quire {

// Looks at the start of the open file of `text`, of which nothing was taken.
// With `reads_fields` it is JSON Lines if the first byte that is neither white
// space nor a record separator (RFC 7464) is {, else a CSV, and UTF-16 is
// converted. `delimiter` is that of the user. `file` names the file in errors;
// `on_note` gets notes without it. Thread-safe for different texts.
// Errors: InvalidArgument  fields cannot be read: a JSON array, Parquet,
// UTF-32;
//         those of the text.
absl::StatusOr<LineFormat> DetectLineFormat(
    LineText& text, bool reads_fields, std::optional<char> delimiter,
    const std::string& file,
    absl::FunctionRef<void(EntryNote, absl::string_view)> on_note);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_LINES_FORMAT_DETECTION_H_
