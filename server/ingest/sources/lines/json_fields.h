// SPDX-License-Identifier: GPL-3.0-or-later
//
// Members of a JSON object, without building the object.
#ifndef QUIRE_SERVER_INGEST_SOURCES_LINES_JSON_FIELDS_H_
#define QUIRE_SERVER_INGEST_SOURCES_LINES_JSON_FIELDS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include "server/ingest/sources/lines/record_field.h"

namespace quire {

// Depth of nested objects and arrays that are checked.
inline constexpr int kJsonDepthMax = 256;

// Parses `text`, one JSON object (RFC 8259) perhaps between white space, and
// sets each of `fields` from the member with its name, or else from the one at
// its path: the characters of a string, a number as it is written, and what
// `takes_any` adds. Of several members with one name the last counts. Checks
// all of the text. Thread-safe.
//
// Names and values may be malformed, such as NaN, an unknown escape, control
// characters, bytes that are not UTF-8, or deeper nested than kJsonDepthMax, as
// long as their end is certain: strings have a closing quote, and brackets
// match. A field with such a value, unless it is an object or array, has the
// state kMalformed. `tolerated`, which may be null, is set to the first other
// such problem, as of an error; otherwise it is cleared.
// Errors: InvalidArgument  not a JSON object; `fields` are then unspecified.
//                          The message has the byte's number from 1.
absl::Status ReadJsonFields(absl::string_view text,
                            absl::Span<RecordField> fields,
                            std::string* tolerated = nullptr);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_LINES_JSON_FIELDS_H_
