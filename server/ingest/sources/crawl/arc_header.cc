// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/crawl/arc_header.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "codecs/base/printable_text.h"

namespace quire {
namespace {

constexpr size_t kDateDigitCount = 14;
// Length of unexpected text in messages.
constexpr size_t kShownLineSizeBytes = 60;

bool IsNumber(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c));
  });
}

bool HasScheme(absl::string_view url) {
  const size_t size = url.substr(0, url.find(':')).size();
  return size > 0 && size < url.size() &&
         absl::ascii_isalpha(static_cast<unsigned char>(url[0])) &&
         std::all_of(url.begin(), url.begin() + size, [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                  c == '+' || c == '-' || c == '.';
         });
}

// Removes the last word and the space before it from `text`.
absl::string_view TakeLastWord(absl::string_view& text) {
  const size_t space = text.rfind(' ');
  const bool is_last = space == absl::string_view::npos;
  const absl::string_view word = is_last ? text : text.substr(space + 1);
  text = is_last ? absl::string_view() : text.substr(0, space);
  return word;
}

// "20050622190850" as a WARC-Date.
std::string WarcDateOf(absl::string_view date) {
  return absl::StrCat(date.substr(0, 4), "-", date.substr(4, 2), "-",
                      date.substr(6, 2), "T", date.substr(8, 2), ":",
                      date.substr(10, 2), ":", date.substr(12, 2), "Z");
}

}  // namespace

absl::StatusOr<WarcHeader> ParseArcHeader(ByteView line) {
  absl::string_view whole = AsText(line);
  absl::ConsumeSuffix(&whole, "\n");
  absl::ConsumeSuffix(&whole, "\r");
  const auto malformed = [whole] {
    return absl::DataLossError(absl::StrCat(
        "found ", QuotedText(whole, kShownLineSizeBytes),
        " where an ARC record must start with URL IP-ADDRESS DATE TYPE "
        "LENGTH"));
  };
  absl::string_view rest = whole;
  const absl::string_view length = TakeLastWord(rest);
  const absl::string_view before_length = rest;
  absl::string_view date;
  do {
    if (rest.empty()) {
      return malformed();
    }
    date = TakeLastWord(rest);
  } while (date.size() != kDateDigitCount || !IsNumber(date));
  const absl::string_view address = TakeLastWord(rest);
  if (!IsNumber(length) || address.empty() || !HasScheme(rest)) {
    return malformed();
  }
  WarcHeader header;
  if (!absl::SimpleAtoi(length, &header.content_length) ||
      header.content_length > static_cast<uint64_t>(INT64_MAX)) {
    return absl::DataLossError(
        absl::StrCat("the length of the record must be at most 2^63 - 1, got ",
                     QuotedText(length, kShownLineSizeBytes)));
  }
  header.target_uri = std::string(rest);
  header.date_ms = ParseWarcDate(WarcDateOf(date));
  // Views of one line: what is between the date and the length.
  absl::string_view type = before_length.substr(
      static_cast<size_t>(date.data() + date.size() - before_length.data()));
  absl::ConsumePrefix(&type, " ");
  type = type.substr(0, type.find(' '));
  if (type.find('/') != absl::string_view::npos) {
    header.media_type = MediaTypeOf(type);
  }
  return header;
}

bool IsArcStart(absl::string_view text) {
  const size_t end = text.find('\n');
  return end == absl::string_view::npos
             ? HasScheme(text)
             : ParseArcHeader(AsBytes(text.substr(0, end))).ok();
}

}  // namespace quire
