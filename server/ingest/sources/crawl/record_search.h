// SPDX-License-Identifier: GPL-3.0-or-later
//
// Finds the next record of a WARC or ARC in text of which the records' own
// lengths tell nothing: after a damaged record, or a wrong length.
#ifndef QUIRE_SERVER_INGEST_SOURCES_CRAWL_RECORD_SEARCH_H_
#define QUIRE_SERVER_INGEST_SOURCES_CRAWL_RECORD_SEARCH_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace quire {

enum class RecordFormat { kWarc, kArc };

struct RecordSearch {
  enum class Outcome {
    // A record begins at `offset`.
    kFound,
    // None begins before `offset`, where the search continues.
    kNone,
    // As kNone; a record may begin at `offset`, which more text decides.
    kNeedsMore,
  };
  Outcome outcome = Outcome::kNone;
  size_t offset = 0;
};

// Upper bound on the header of a record that is found.
inline constexpr size_t kFoundHeaderSizeBytesMax = size_t{64} << 10;

// Searches `text` for the first record: in a WARC for a whole header without
// any fault, also in the middle of a line, in an ARC for a header line.
// `at_line_start`: so does `text`. `is_end`: no text follows. Takes time in
// proportion to the text, whatever it is. Thread-safe.
RecordSearch FindRecordStart(RecordFormat format, absl::string_view text,
                             bool at_line_start, bool is_end);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_CRAWL_RECORD_SEARCH_H_
