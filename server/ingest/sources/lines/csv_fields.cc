// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/lines/csv_fields.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

// The last record of a file may end in CR alone.
absl::string_view WithoutLineEnd(absl::string_view record) {
  absl::ConsumeSuffix(&record, "\n");
  absl::ConsumeSuffix(&record, "\r");
  return record;
}

// Returns the offset after the quote that closes the field whose text begins at
// `begin`; npos if there is none.
size_t AfterClosingQuote(absl::string_view text, size_t begin) {
  while (true) {
    const size_t quote = text.find('"', begin);
    if (quote == text.npos) {
      return text.npos;
    }
    if (quote + 1 == text.size() || text[quote + 1] != '"') {
      return quote + 1;
    }
    begin = quote + 2;
  }
}

// Passes each field of a record without line end to `take`, with its number
// from 0: its text in the record, without outer quotes, and true if that has
// doubled quotes.
template <typename Take>
absl::Status VisitFields(absl::string_view record, char delimiter,
                         const Take& take) {
  size_t begin = 0;
  for (size_t number = 0;; ++number) {
    size_t end = 0;
    if (begin < record.size() && record[begin] == '"') {
      end = AfterClosingQuote(record, begin + 1);
      if (end == record.npos) {
        return absl::InvalidArgumentError(
            absl::StrCat("is not CSV: the quote that begins field ", number + 1,
                         " is not closed"));
      }
      if (end < record.size() && record[end] != delimiter) {
        return absl::InvalidArgumentError(
            absl::StrCat("is not CSV: expected ",
                         QuotedText(absl::string_view(&delimiter, 1)),
                         " after the quote that closes field ", number + 1));
      }
      const absl::string_view text = record.substr(begin + 1, end - begin - 2);
      take(number, text, absl::StrContains(text, '"'));
    } else {
      end = std::min(record.find(delimiter, begin), record.size());
      const absl::string_view text = record.substr(begin, end - begin);
      // Most such files mean a quoted field, in which delimiters do not count.
      if (absl::StartsWith(absl::StripLeadingAsciiWhitespace(text), "\"")) {
        return absl::InvalidArgumentError(
            absl::StrCat("is not CSV: field ", number + 1,
                         " has blanks before its first quote"));
      }
      take(number, text, false);
    }
    if (end == record.size()) {
      return absl::OkStatus();
    }
    begin = end + 1;
  }
}

void AssignField(absl::string_view text, bool has_quotes, std::string& value) {
  value.clear();
  for (size_t begin = 0; has_quotes;) {
    const size_t quote = text.find('"', begin);
    if (quote == text.npos) {
      text = text.substr(begin);
      break;
    }
    // One of the two.
    value.append(text.data() + begin, quote + 1 - begin);
    begin = quote + 2;
  }
  value.append(text.data(), text.size());
}

}  // namespace

std::optional<size_t> CsvRecordSize(absl::string_view text,
                                    const CsvDialect& dialect) {
  size_t begin = 0;
  while (true) {
    if (begin < text.size() && text[begin] == '"') {
      begin = AfterClosingQuote(text, begin + 1);
      if (begin == text.npos) {
        return std::nullopt;
      }
    }
    while (begin < text.size() && text[begin] != dialect.delimiter &&
           text[begin] != dialect.line_end) {
      ++begin;
    }
    if (begin == text.size()) {
      return std::nullopt;
    }
    if (text[begin++] == dialect.line_end) {
      return begin;
    }
  }
}

std::optional<char> CsvDelimiterOf(absl::string_view line) {
  constexpr absl::string_view kMark = "sep=";
  line = line.substr(0, line.find_first_of("\r\n"));
  return line.size() == kMark.size() + 1 &&
                 absl::StartsWithIgnoreCase(line, kMark) && line.back() != '"'
             ? std::optional(line.back())
             : std::nullopt;
}

absl::StatusOr<std::vector<std::string>> SplitCsvRecord(
    absl::string_view record, const CsvDialect& dialect) {
  std::vector<std::string> fields;
  QUIRE_RETURN_IF_ERROR(VisitFields(
      WithoutLineEnd(record), dialect.delimiter,
      [&fields](size_t /*number*/, absl::string_view text, bool has_quotes) {
        AssignField(text, has_quotes, fields.emplace_back());
      }));
  return fields;
}

absl::Status ReadCsvFields(absl::string_view record, size_t column_count,
                           absl::Span<RecordField> fields,
                           const CsvDialect& dialect) {
  size_t count = 0;
  QUIRE_RETURN_IF_ERROR(
      VisitFields(WithoutLineEnd(record), dialect.delimiter,
                  [&](size_t number, absl::string_view text, bool has_quotes) {
                    count = number + 1;
                    for (RecordField& field : fields) {
                      if (field.column == number) {
                        field.state = RecordField::State::kFound;
                        AssignField(text, has_quotes, field.value);
                      }
                    }
                  }));
  if (count != column_count) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", count, count == 1 ? " field" : " fields",
                     ", the header line has ", column_count));
  }
  return absl::OkStatus();
}

}  // namespace quire
