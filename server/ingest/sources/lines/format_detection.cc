// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/lines/format_detection.h"

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "codecs/base/status_macros.h"
#include "server/ingest/sources/lines/utf16_stream.h"
#include "server/ingest/sources/packed_source.h"

namespace quire {
namespace {

using OnNote = absl::FunctionRef<void(EntryNote, absl::string_view)>;

// True if `text` begins like an array with a JSON value, not like the header of
// a CSV.
bool IsJsonArrayStart(absl::string_view text) {
  constexpr absl::string_view kSpace = " \t\r\n";
  if (!absl::ConsumePrefix(&text, "[")) {
    return false;
  }
  const size_t first = text.find_first_not_of(kSpace);
  return first == text.npos || absl::StrContains("{[]\"", text[first]);
}

// Notes what makes lines of such a file doubtful.
void NoteForeignText(absl::string_view start, OnNote on_note) {
  if (WideEncodingOf(start).has_value()) {
    on_note(EntryNote::kForeignFormat,
            "is UTF-16 or UTF-32 by its byte order mark, and its lines are cut "
            "at the bytes of line feeds, inside of characters; convert it to "
            "UTF-8 before");
  } else if (absl::StartsWith(start, kParquetMagic)) {
    on_note(EntryNote::kForeignFormat,
            absl::StrCat("is Parquet, and has no lines; ", kParquetAdvice));
  } else if (absl::StrContains(start, '\0')) {
    on_note(EntryNote::kForeignFormat,
            "has zero bytes, so it may not be text (compressed by a program "
            "that is not known here?); its lines are cut at the bytes of line "
            "feeds");
  }
}

// Converts UTF-16 to UTF-8.
absl::Status MakeUtf8(LineText& text, const std::string& file, OnNote on_note) {
  const std::optional<WideEncoding> encoding = WideEncodingOf(text.buffered());
  if (!encoding.has_value()) {
    return absl::OkStatus();
  }
  if (encoding == WideEncoding::kUtf32) {
    return absl::InvalidArgumentError(
        absl::StrCat(file,
                     ": is UTF-32 by its byte order mark; convert it to UTF-8, "
                     "as by iconv"));
  }
  QUIRE_RETURN_IF_ERROR(text.status());
  on_note(EntryNote::kTolerated,
          "is UTF-16 by its byte order mark, and stored as UTF-8");
  return text.ConvertUtf16(encoding == WideEncoding::kUtf16Big, file);
}

}  // namespace

absl::StatusOr<LineFormat> DetectLineFormat(LineText& text, bool reads_fields,
                                            std::optional<char> delimiter,
                                            const std::string& file,
                                            OnNote on_note) {
  LineFormat format;
  format.dialect.delimiter = delimiter.value_or(',');
  if (!reads_fields) {
    NoteForeignText(text.buffered(), on_note);
    return format;
  }
  if (absl::StartsWith(text.buffered(), kParquetMagic)) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": is Parquet, and has no lines; ", kParquetAdvice));
  }
  QUIRE_RETURN_IF_ERROR(MakeUtf8(text, file, on_note));
  const absl::string_view first_piece =
      text.buffered().substr(0, LineText::kBufferSizeBytes);
  if (absl::StrContains(first_piece, '\r') &&
      !absl::StrContains(first_piece, '\n')) {
    format.dialect.line_end = '\r';
  }
  const absl::string_view start = WithoutByteOrderMark(text.buffered());
  const size_t first = start.find_first_not_of(kRecordBlanks);
  if (first == start.npos || start[first] == '{') {
    format.kind = LineFormat::Kind::kJsonLines;
    format.spans_lines = absl::StrContains(start.substr(0, first), '\x1E');
    return format;
  }
  if (IsJsonArrayStart(start.substr(first))) {
    return absl::InvalidArgumentError(absl::StrCat(
        file,
        ": is a JSON array; --split takes JSON Lines, an object on each line, "
        "as jq -c '.[]' writes them"));
  }
  format.kind = LineFormat::Kind::kCsv;
  format.spans_lines = true;
  return format;
}

}  // namespace quire
