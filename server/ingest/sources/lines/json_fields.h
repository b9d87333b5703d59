// SPDX-License-Identifier: GPL-3.0-or-later
//
// Members of a JSON object, without building the object.
#ifndef QUIRE_SERVER_INGEST_SOURCES_LINES_JSON_FIELDS_H_
#define QUIRE_SERVER_INGEST_SOURCES_LINES_JSON_FIELDS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include "server/ingest/sources/lines/record_field.h"

namespace quire {

// Depth of nested objects and arrays in a record.
inline constexpr int kJsonDepthMax = 256;

// Parses `text`, one JSON object (RFC 8259) perhaps between white space, and
// sets each of `fields` from the member with its name: the characters of a
// string, or a number as it is written. Of several members with one name the
// last counts. Checks all of the text. Thread-safe.
// Errors: InvalidArgument  not a JSON object, not UTF-8, or nested too deeply;
//                          `fields` are then unspecified. The message has the
//                          byte's number from 1.
absl::Status ReadJsonFields(absl::string_view text,
                            absl::Span<RecordField> fields);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_LINES_JSON_FIELDS_H_
