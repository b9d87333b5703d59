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
    // Neither a string nor a number.
    kWrongType,
  };

  std::string name = {};
  // Index of its column: for CSV.
  size_t column = 0;
  State state = State::kMissing;
  // Any bytes if found.
  std::string value = {};
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_LINES_RECORD_FIELD_H_
