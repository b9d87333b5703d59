// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/crawl/warc_header.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "codecs/base/header_fields.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

// For messages: untrusted and of any length.
std::string Quoted(absl::string_view text) {
  return QuotedText(text, 60);
}

std::string WithoutAngles(absl::string_view uri) {
  if (uri.size() >= 2 && uri.front() == '<' && uri.back() == '>') {
    uri = uri.substr(1, uri.size() - 2);
  }
  return std::string(uri);
}

absl::StatusOr<uint64_t> ParseContentLength(absl::string_view text) {
  uint64_t length = 0;
  if (text.empty() || !std::all_of(text.begin(), text.end(), [](char c) {
        return absl::ascii_isdigit(static_cast<unsigned char>(c));
      })) {
    return absl::DataLossError(absl::StrCat(
        "Content-Length must be a number of bytes, got ", Quoted(text)));
  }
  if (!absl::SimpleAtoi(text, &length) ||
      length > static_cast<uint64_t>(INT64_MAX)) {
    return absl::DataLossError(absl::StrCat(
        "Content-Length must be at most 2^63 - 1, got ", Quoted(text)));
  }
  return length;
}

void KeepFirst(std::string value, std::string& kept) {
  if (kept.empty()) {
    kept = std::move(value);
  }
}

absl::Status TakeIntoHeader(const HeaderField& field,
                            std::optional<uint64_t>& content_length,
                            WarcHeader& header) {
  if (absl::EqualsIgnoreCase(field.name, "Content-Length")) {
    QUIRE_ASSIGN_OR_RETURN(const uint64_t length,
                           ParseContentLength(field.value));
    if (content_length.value_or(length) != length) {
      return absl::DataLossError(
          absl::StrCat("the header has two fields Content-Length, ",
                       *content_length, " and ", length, "; they must agree"));
    }
    content_length = length;
  } else if (absl::EqualsIgnoreCase(field.name, "WARC-Type")) {
    KeepFirst(absl::AsciiStrToLower(field.value), header.record_type);
  } else if (absl::EqualsIgnoreCase(field.name, "WARC-Target-URI")) {
    KeepFirst(WithoutAngles(field.value), header.target_uri);
  } else if (absl::EqualsIgnoreCase(field.name, "WARC-Record-ID")) {
    KeepFirst(WithoutAngles(field.value), header.record_id);
  } else if (absl::EqualsIgnoreCase(field.name, "WARC-Date")) {
    if (!header.date_ms.has_value()) {
      header.date_ms = ParseWarcDate(field.value);
    }
  } else if (absl::EqualsIgnoreCase(field.name, "Content-Type")) {
    KeepFirst(MediaTypeOf(field.value), header.media_type);
  }
  return absl::OkStatus();
}

// Removes exactly `count` digits from the front.
std::optional<int> TakeNumber(absl::string_view& text, size_t count) {
  if (text.size() < count) {
    return std::nullopt;
  }
  int value = 0;
  for (const char c : text.substr(0, count)) {
    if (c < '0' || c > '9') {
      return std::nullopt;
    }
    value = value * 10 + (c - '0');
  }
  text.remove_prefix(count);
  return value;
}

// Removes ".123" from the front, as milliseconds; nullopt if malformed.
std::optional<int> TakeFraction(absl::string_view& text) {
  if (!absl::ConsumePrefix(&text, ".")) {
    return 0;
  }
  constexpr size_t kDigitsMax = 9;
  size_t digit_count = 0;
  int milliseconds = 0;
  for (int weight = 100;
       digit_count < text.size() &&
       absl::ascii_isdigit(static_cast<unsigned char>(text[digit_count]));
       ++digit_count, weight /= 10) {
    milliseconds += weight * (text[digit_count] - '0');
  }
  if (digit_count == 0 || digit_count > kDigitsMax) {
    return std::nullopt;
  }
  text.remove_prefix(digit_count);
  return milliseconds;
}

}  // namespace

absl::StatusOr<WarcHeader> ParseWarcHeader(ByteView bytes) {
  absl::string_view rest = AsText(bytes);
  WarcHeader header;
  const size_t first_end = rest.find('\n');
  header.crlf = first_end != absl::string_view::npos && first_end > 0 &&
                rest[first_end - 1] == '\r';
  const absl::string_view version = TakeHeaderLine(rest);
  if (version != "WARC/1.0" && version != "WARC/1.1") {
    return absl::DataLossError(absl::StrCat(
        "found ", Quoted(version), " where a record must start with WARC/1.0 ",
        "or WARC/1.1"));
  }
  std::optional<uint64_t> content_length;
  while (std::optional<HeaderField> field = TakeHeaderField(rest)) {
    if (field->name.empty()) {
      return absl::DataLossError(absl::StrCat(
          "a header line must be NAME: VALUE, got ", Quoted(field->value)));
    }
    QUIRE_RETURN_IF_ERROR(TakeIntoHeader(*field, content_length, header));
  }
  if (!content_length.has_value()) {
    return absl::DataLossError(
        "the header has no field Content-Length, which every record must have");
  }
  header.content_length = *content_length;
  return header;
}

std::optional<int64_t> ParseWarcDate(absl::string_view text) {
  // Year, month, day, hour, minute, second, and the separator before each.
  std::array<int, 6> parts = {0, 1, 1, 0, 0, 0};
  constexpr absl::string_view kBefore = " --T::";
  size_t count = 0;
  for (; count < parts.size(); ++count) {
    if (count > 0 && !absl::ConsumePrefix(&text, kBefore.substr(count, 1))) {
      break;
    }
    const std::optional<int> number = TakeNumber(text, count == 0 ? 4 : 2);
    if (!number.has_value()) {
      return std::nullopt;
    }
    parts[count] = *number;
  }
  const std::optional<int> milliseconds =
      count == parts.size() ? TakeFraction(text) : 0;
  // An hour without minutes is invalid; a time of day needs its zone.
  const bool has_time = count > 3;
  if (!milliseconds.has_value() || count == 4 ||
      text != (has_time ? "Z" : "")) {
    return std::nullopt;
  }
  const std::chrono::year_month_day date(
      std::chrono::year(parts[0]),
      std::chrono::month(static_cast<unsigned>(parts[1])),
      std::chrono::day(static_cast<unsigned>(parts[2])));
  // 60 is a leap second.
  if (!date.ok() || parts[3] > 23 || parts[4] > 59 || parts[5] > 60) {
    return std::nullopt;
  }
  const int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  const int64_t seconds =
      ((days * 24 + parts[3]) * 60 + parts[4]) * 60 + parts[5];
  return seconds * 1000 + *milliseconds;
}

std::string MediaTypeOf(absl::string_view content_type) {
  return absl::AsciiStrToLower(absl::StripAsciiWhitespace(
      content_type.substr(0, content_type.find(';'))));
}

std::optional<std::string> HttpMediaType(ByteView bytes) {
  absl::string_view rest = AsText(bytes);
  if (!absl::StartsWith(rest, "HTTP/")) {
    return std::nullopt;
  }
  // A truncated header may end inside its last line.
  const std::optional<size_t> end = FindHeaderEnd(bytes);
  rest = rest.substr(0, end.has_value() ? *end : rest.rfind('\n') + 1);
  TakeHeaderLine(rest);
  while (std::optional<HeaderField> field = TakeHeaderField(rest)) {
    if (absl::EqualsIgnoreCase(field->name, "Content-Type")) {
      return MediaTypeOf(field->value);
    }
  }
  return std::string();
}

}  // namespace quire
