// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_INGEST_SOURCES_LINES_RECORD_FIELD_H_
#define QUIRE_SERVER_INGEST_SOURCES_LINES_RECORD_FIELD_H_

#include <cstddef>
#include <string>

namespace quire {

// A field that is wanted of each record, and its value in one record.
struct RecordField {
  enum class State {
    kMissing,
    kFound,
    // Neither a string nor a number; with `takes_any`, null.
    kWrongType,
    // JSON: malformed; `value` says why.
    kMalformed,
  };

  // In JSON also a path: names of members, each in the object before, with dots
  // between them.
  std::string name = {};
  // JSON: objects, arrays, true and false are values too, as they are written.
  bool takes_any = false;
  // Index of its column: for CSV.
  size_t column = 0;
  State state = State::kMissing;
  // Any bytes if found.
  std::string value = {};
  // Form of a found value: JSON, or text of a CSV.
  enum class Form { kText, kString, kNumber, kBoolean, kNested };
  Form form = Form::kText;
  // Used by the parser: `name` is that of a member, not a path.
  bool is_member = false;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_LINES_RECORD_FIELD_H_
