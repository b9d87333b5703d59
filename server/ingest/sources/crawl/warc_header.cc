// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/crawl/warc_header.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "codecs/base/date_digits.h"
#include "codecs/base/header_fields.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

constexpr size_t kDigestSizeBytesMax = 256;

// For messages: untrusted and of any length.
std::string Quoted(absl::string_view text) {
  return QuotedText(text, 60);
}

bool IsDigits(absl::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c));
  });
}

std::string WithoutAngles(absl::string_view uri) {
  if (uri.size() >= 2 && uri.front() == '<' && uri.back() == '>') {
    uri = uri.substr(1, uri.size() - 2);
  }
  return std::string(uri);
}

// Sets the length that all of `fields` state, or notes why there is none.
void TakeContentLength(const std::vector<std::string>& fields,
                       WarcHeader& header) {
  std::string fault = fields.empty() ? "must be given" : "";
  std::optional<uint64_t> taken;
  for (const std::string& text : fields) {
    uint64_t length = 0;
    if (text.empty() || !IsDigits(text)) {
      fault = absl::StrCat("must be a number of bytes, got ", Quoted(text));
    } else if (!absl::SimpleAtoi(text, &length) ||
               length > static_cast<uint64_t>(INT64_MAX)) {
      fault = absl::StrCat("must be at most 2^63 - 1, got ", Quoted(text));
    } else if (taken.value_or(length) != length) {
      fault = absl::StrCat("must be one number, got ", *taken, " and ", length);
    } else {
      taken = length;
    }
  }
  if (fault.empty()) {
    header.content_length = taken;
  } else {
    header.oddities.push_back(absl::StrCat("its Content-Length ", fault));
  }
}

// Notes a repeated field with another value: the header may be of two records.
void KeepFirst(absl::string_view name, std::string value, std::string& kept,
               WarcHeader& header) {
  if (kept.empty()) {
    kept = std::move(value);
  } else if (!value.empty() && value != kept) {
    header.oddities.push_back(absl::StrCat("its ", name, " must be one, got ",
                                           Quoted(kept), " and ", Quoted(value),
                                           "; the first is taken"));
  }
}

void TakeDate(const std::string& text, WarcHeader& header) {
  if (header.date_ms.has_value()) {
    return;
  }
  header.date_ms = ParseWarcDate(text);
  if (!header.date_ms.has_value()) {
    header.oddities.push_back(absl::StrCat(
        "its WARC-Date must be a date such as 2020-01-31T23:59:59Z, got ",
        Quoted(text), "; it is kept without a time"));
  }
}

void TakeDigest(const std::string& text, WarcHeader& header) {
  if (!header.payload_digest.empty()) {
    return;
  }
  if (text.size() > kDigestSizeBytesMax) {
    header.oddities.push_back(absl::StrCat(
        "its WARC-Payload-Digest must have at most ", kDigestSizeBytesMax,
        " bytes, got ", text.size(), "; it is not indexed"));
    return;
  }
  header.payload_digest = text;
}

void TakeIntoHeader(const HeaderField& field, WarcHeader& header,
                    std::vector<std::string>& lengths) {
  if (absl::EqualsIgnoreCase(field.name, "Content-Length")) {
    lengths.push_back(field.value);
  } else if (absl::EqualsIgnoreCase(field.name, "WARC-Type")) {
    KeepFirst("WARC-Type", absl::AsciiStrToLower(field.value),
              header.record_type, header);
  } else if (absl::EqualsIgnoreCase(field.name, "WARC-Target-URI")) {
    KeepFirst("WARC-Target-URI", WithoutAngles(field.value), header.target_uri,
              header);
  } else if (absl::EqualsIgnoreCase(field.name, "WARC-Record-ID")) {
    KeepFirst("WARC-Record-ID", WithoutAngles(field.value), header.record_id,
              header);
  } else if (absl::EqualsIgnoreCase(field.name, "WARC-Concurrent-To")) {
    // A record may have several.
    if (header.concurrent_to.empty()) {
      header.concurrent_to = WithoutAngles(field.value);
    }
  } else if (absl::EqualsIgnoreCase(field.name, "WARC-Payload-Digest")) {
    TakeDigest(field.value, header);
  } else if (absl::EqualsIgnoreCase(field.name, "WARC-Date")) {
    TakeDate(field.value, header);
  } else if (absl::EqualsIgnoreCase(field.name, "Content-Type")) {
    KeepFirst("Content-Type", MediaTypeOf(field.value), header.media_type,
              header);
  }
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

// Year, month, day, hour, minute, second.
using DateParts = std::array<int, 6>;
constexpr size_t kDigitDateSize = 14;

// Removes the parts from the front of `text`; returns their number. Each has
// its character of `separators` before it, unless there are none.
std::optional<size_t> TakeDateParts(absl::string_view separators,
                                    absl::string_view& text, DateParts& parts) {
  parts = {0, 1, 1, 0, 0, 0};
  size_t count = 0;
  for (; count < parts.size(); ++count) {
    if (count > 0 && !separators.empty() &&
        !absl::ConsumePrefix(&text, separators.substr(count, 1))) {
      break;
    }
    const std::optional<int> number = TakeNumber(text, count == 0 ? 4 : 2);
    if (!number.has_value()) {
      return std::nullopt;
    }
    parts[count] = *number;
  }
  return count;
}

// Removes "Z", "+01:00", "-0130" or "+01" from the front; returns the offset
// from UTC. Nullopt if malformed, 0 for no zone.
std::optional<int> TakeZoneMinutes(absl::string_view& text) {
  if (text.empty() || absl::ConsumePrefix(&text, "Z")) {
    return 0;
  }
  const bool is_west = absl::ConsumePrefix(&text, "-");
  if (!is_west && !absl::ConsumePrefix(&text, "+")) {
    return std::nullopt;
  }
  const std::optional<int> hours = TakeNumber(text, 2);
  absl::ConsumePrefix(&text, ":");
  const std::optional<int> minutes = text.empty() ? 0 : TakeNumber(text, 2);
  if (!hours.has_value() || !minutes.has_value() || *hours > 23 ||
      *minutes > 59) {
    return std::nullopt;
  }
  return (*hours * 60 + *minutes) * (is_west ? -1 : 1);
}

}  // namespace

absl::StatusOr<WarcHeader> ParseWarcHeader(ByteView bytes) {
  absl::string_view rest = AsText(bytes);
  WarcHeader header;
  const size_t first_end = rest.find('\n');
  header.crlf = first_end != absl::string_view::npos && first_end > 0 &&
                rest[first_end - 1] == '\r';
  const absl::string_view version = TakeHeaderLine(rest);
  if (!IsWarcVersion(version)) {
    return absl::DataLossError(absl::StrCat(
        "found ", Quoted(version), " where a record must start with WARC/1.0 ",
        "or WARC/1.1"));
  }
  std::vector<std::string> lengths;
  // The field in which another record may begin.
  absl::string_view cut_name;
  while (std::optional<HeaderField> field = TakeHeaderField(rest)) {
    const bool has_version = EndsWithWarcVersion(field->value);
    if (field->name.empty() ? has_version
                            : absl::EqualsIgnoreCase(field->name, cut_name)) {
      return absl::DataLossError(
          "its header must end with an empty line, and another record begins "
          "in it (is it truncated?)");
    }
    if (has_version && cut_name.empty()) {
      cut_name = field->name;
    }
    if (field->name.empty()) {
      header.oddities.push_back(
          absl::StrCat("a header line must be NAME: VALUE, got ",
                       Quoted(field->value), "; the line is ignored"));
      continue;
    }
    TakeIntoHeader(*field, header, lengths);
  }
  TakeContentLength(lengths, header);
  return header;
}

bool IsWarcVersion(absl::string_view line) {
  constexpr std::array<absl::string_view, 4> kVersions = {
      "WARC/1.0", "WARC/1.1", "WARC/0.17", "WARC/0.18"};
  line = absl::StripTrailingAsciiWhitespace(line);
  return std::any_of(kVersions.begin(), kVersions.end(),
                     [line](absl::string_view version) {
                       return absl::EqualsIgnoreCase(line, version);
                     });
}

bool EndsWithWarcVersion(absl::string_view line) {
  constexpr size_t kNameSize = 4;
  const size_t slash = line.rfind('/');
  return slash != absl::string_view::npos && slash >= kNameSize &&
         IsWarcVersion(line.substr(slash - kNameSize));
}

std::optional<int64_t> ParseWarcDate(absl::string_view text) {
  DateParts parts;
  const std::optional<size_t> count =
      text.size() == kDigitDateSize && IsDigits(text)
          ? TakeDateParts("", text, parts)
          : TakeDateParts(absl::StrContains(text, ' ') ? " -- ::" : " --T::",
                          text, parts);
  if (!count.has_value()) {
    return std::nullopt;
  }
  const std::optional<int> milliseconds =
      *count == parts.size() ? TakeFraction(text) : 0;
  // An hour without minutes is invalid; only a time of day has a zone.
  const std::optional<int> offset_minutes =
      *count > 3 ? TakeZoneMinutes(text) : 0;
  if (!milliseconds.has_value() || *count == 4 || !offset_minutes.has_value() ||
      !text.empty()) {
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
  const int64_t minutes =
      (days * 24 + parts[3]) * 60 + parts[4] - *offset_minutes;
  return (minutes * 60 + parts[5]) * 1000 + *milliseconds;
}

std::string MediaTypeOf(absl::string_view content_type) {
  return absl::AsciiStrToLower(absl::StripAsciiWhitespace(
      content_type.substr(0, content_type.find(';'))));
}

uint32_t HttpStatus(ByteView bytes) {
  absl::string_view line = AsText(bytes.subspan(BlankLinesSize(AsText(bytes))));
  line = line.substr(0, line.find('\n'));
  // HTTP/1.1 200 OK
  if (!absl::ConsumePrefix(&line, "HTTP/")) {
    return 0;
  }
  line.remove_prefix(std::min(line.find_first_of(" \t"), line.size()));
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  const std::optional<int> status = TakeNumber(line, 3);
  const bool is_longer =
      !line.empty() && absl::ascii_isdigit(static_cast<unsigned char>(line[0]));
  return status.has_value() && !is_longer ? static_cast<uint32_t>(*status) : 0;
}

std::optional<std::string> HttpMediaType(ByteView bytes) {
  absl::string_view rest = AsText(bytes);
  bytes = bytes.subspan(BlankLinesSize(rest));
  rest = AsText(bytes);
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
