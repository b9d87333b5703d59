// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/crawl/record_search.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"

#include "codecs/base/bytes.h"
#include "server/ingest/sources/crawl/arc_header.h"
#include "server/ingest/sources/crawl/warc_header.h"

namespace quire {
namespace {

constexpr absl::string_view kWarcStart = "WARC/";

// Longest line end searched for a version: blanks may follow it.
constexpr size_t kVersionLineSizeBytesMax = 32;

// Returns the first offset from `offset` on at which a line ends with a
// version, or may end with one, as the text ends; npos if there is none. What
// precedes a record may be truncated, so that it need not begin a line.
size_t FindVersion(absl::string_view text, size_t offset, bool is_end) {
  size_t slash = text.find('/', offset);
  for (; slash != absl::string_view::npos; slash = text.find('/', slash + 1)) {
    if (slash + 1 < offset + kWarcStart.size()) {
      continue;
    }
    const size_t start = slash + 1 - kWarcStart.size();
    const absl::string_view rest = text.substr(start, kVersionLineSizeBytesMax);
    const size_t end = rest.find('\n');
    if (absl::StartsWithIgnoreCase(rest, kWarcStart) &&
        (end != absl::string_view::npos
             ? IsWarcVersion(rest.substr(0, end))
             : rest.size() < kVersionLineSizeBytesMax && !is_end)) {
      return start;
    }
  }
  return absl::string_view::npos;
}

// The lines of a text from an offset on.
class Lines {
 public:
  Lines(absl::string_view text, size_t offset) : text_(text), next_(offset) {}

  // Moves to the next line; false at the end of the text, or if the line does
  // not end.
  bool Next() {
    start_ = next_;
    const size_t end = text_.find('\n', next_);
    if (end == absl::string_view::npos) {
      return false;
    }
    line_ = text_.substr(start_, end - start_);
    absl::ConsumeSuffix(&line_, "\r");
    next_ = end + 1;
    return true;
  }

  // Without its end.
  absl::string_view line() const { return line_; }

  // Offset of the line, and of the next one.
  size_t start() const { return start_; }

  size_t next() const { return next_; }

 private:
  absl::string_view text_;
  absl::string_view line_;
  size_t start_ = 0;
  size_t next_;
};

bool IsField(absl::string_view line) {
  const size_t colon = line.find(':');
  return line[0] == ' ' || line[0] == '\t' ||
         (colon != absl::string_view::npos && colon > 0);
}

bool HaveOneName(absl::string_view a, absl::string_view b) {
  return absl::EqualsIgnoreCase(a.substr(0, a.find(':')),
                                b.substr(0, b.find(':')));
}

bool IsWholeHeader(absl::string_view header) {
  const absl::StatusOr<WarcHeader> parsed = ParseWarcHeader(AsBytes(header));
  return parsed.ok() && parsed->oddities.empty();
}

// Looks for a header at `offset` of `text`. kNone: the returned offset is that
// of the first line end before which no other header begins.
RecordSearch TryHeader(absl::string_view text, size_t offset, bool is_end) {
  using Outcome = RecordSearch::Outcome;
  Lines lines(text, offset);
  // In which another header may begin: then its field follows again.
  absl::string_view cut_line;
  while (lines.next() - offset <= kFoundHeaderSizeBytesMax && lines.Next()) {
    const absl::string_view line = lines.line();
    if (lines.start() == offset) {
      if (!IsWarcVersion(line)) {
        return {Outcome::kNone, lines.next() - 1};
      }
    } else if (line.empty()) {
      return IsWholeHeader(text.substr(offset, lines.next() - offset))
                 ? RecordSearch{Outcome::kFound, offset}
                 : RecordSearch{Outcome::kNone, lines.next() - 1};
    } else if (!IsField(line)) {
      // The first line of a header may be in it.
      return {Outcome::kNone, lines.start() - 1};
    } else if (cut_line.empty()) {
      cut_line = EndsWithWarcVersion(line) ? line : cut_line;
    } else if (HaveOneName(cut_line, line)) {
      return {Outcome::kNone,
              static_cast<size_t>(cut_line.data() - text.data()) - 1};
    }
  }
  if (is_end || text.size() - offset > kFoundHeaderSizeBytesMax) {
    return {Outcome::kNone, std::max(lines.start(), offset + 1) - 1};
  }
  return {Outcome::kNeedsMore, offset};
}

RecordSearch FindWarcStart(absl::string_view text, bool is_end) {
  using Outcome = RecordSearch::Outcome;
  size_t offset = 0;
  while (true) {
    const size_t start = FindVersion(text, offset, is_end);
    if (start == absl::string_view::npos) {
      // The last bytes may be the beginning of it.
      return {Outcome::kNone,
              std::max(offset,
                       text.size() - std::min(text.size(), kWarcStart.size()))};
    }
    const RecordSearch found = TryHeader(text, start, is_end);
    if (found.outcome != Outcome::kNone) {
      return found;
    }
    offset = std::max(found.offset, start + 1);
  }
}

RecordSearch FindArcStart(absl::string_view text, bool at_line_start,
                          bool is_end) {
  using Outcome = RecordSearch::Outcome;
  size_t offset = 0;
  if (!at_line_start) {
    const size_t end = text.find('\n');
    if (end == absl::string_view::npos) {
      return {Outcome::kNone, text.size()};
    }
    offset = end + 1;
  }
  Lines lines(text, offset);
  while (lines.Next()) {
    if (BeginsWithScheme(lines.line()) &&
        ParseArcLine(lines.line()).has_value()) {
      return {Outcome::kFound, lines.start()};
    }
  }
  return is_end || text.size() - lines.start() > kFoundHeaderSizeBytesMax
             ? RecordSearch{Outcome::kNone, text.size()}
             : RecordSearch{Outcome::kNeedsMore, lines.start()};
}

}  // namespace

RecordSearch FindRecordStart(RecordFormat format, absl::string_view text,
                             bool at_line_start, bool is_end) {
  return format == RecordFormat::kWarc
             ? FindWarcStart(text, is_end)
             : FindArcStart(text, at_line_start, is_end);
}

}  // namespace quire
