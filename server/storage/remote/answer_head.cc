// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/remote/answer_head.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "codecs/base/printable_text.h"

namespace quire {
namespace {

constexpr int kOk = 200;
constexpr int kPartialContent = 206;
// A server keeps one for each object; stores send some 70 bytes.
constexpr size_t kEtagSizeBytesMax = 1024;

// Digits only: SimpleAtoi() also takes signs and spaces.
std::optional<uint64_t> ParseDigits(absl::string_view text) {
  uint64_t number = 0;
  if (text.empty() ||
      text.find_first_not_of("0123456789") != absl::string_view::npos ||
      !absl::SimpleAtoi(text, &number)) {
    return std::nullopt;
  }
  return number;
}

absl::Status Refused(absl::string_view found, absl::string_view expected) {
  return absl::InternalError(
      absl::StrCat("the store answered ", found, ", expected ", expected));
}

std::string RangeText(const ContentRange& range) {
  return absl::StrCat("bytes ", range.first, "-", range.last, "/",
                      range.object_size);
}

}  // namespace

std::optional<ContentRange> ParseContentRange(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, "bytes ")) {
    return std::nullopt;
  }
  const size_t dash = text.find('-');
  const size_t slash = text.find('/');
  if (dash == absl::string_view::npos || slash == absl::string_view::npos ||
      slash < dash) {
    return std::nullopt;
  }
  const auto first = ParseDigits(text.substr(0, dash));
  const auto last = ParseDigits(text.substr(dash + 1, slash - dash - 1));
  const auto size = ParseDigits(text.substr(slash + 1));
  if (!first.has_value() || !last.has_value() || !size.has_value() ||
      *first > *last || *last >= *size) {
    return std::nullopt;
  }
  return ContentRange{.first = *first, .last = *last, .object_size = *size};
}

void AnswerHead::AddLine(absl::string_view line) {
  line = absl::StripTrailingAsciiWhitespace(line);
  if (absl::StartsWith(line, "HTTP/")) {
    *this = AnswerHead();
    const size_t space = line.find(' ');
    int code = 0;
    if (space != absl::string_view::npos &&
        absl::SimpleAtoi(line.substr(space + 1, 3), &code) && code >= 100 &&
        code <= 999) {
      status = code;
    }
    return;
  }
  const size_t colon = line.find(':');
  if (colon == absl::string_view::npos) {
    return;
  }
  const absl::string_view name = line.substr(0, colon);
  const std::string value(absl::StripAsciiWhitespace(line.substr(colon + 1)));
  if (absl::EqualsIgnoreCase(name, "content-range")) {
    content_range = value;
  } else if (absl::EqualsIgnoreCase(name, "etag")) {
    etag = value;
  } else if (absl::EqualsIgnoreCase(name, "content-encoding")) {
    content_encoding = value;
  } else if (absl::EqualsIgnoreCase(name, "last-modified")) {
    last_modified = value;
  } else if (absl::EqualsIgnoreCase(name, "content-length")) {
    content_length = ParseDigits(value);
  }
}

std::optional<absl::Time> ParseHttpTime(absl::string_view text) {
  absl::Time time;
  std::string ignored;
  return absl::ParseTime("%a, %d %b %Y %H:%M:%S GMT", text, &time, &ignored)
             ? std::optional(time)
             : std::nullopt;
}

absl::Status CheckAnswerHead(const AnswerHead& head,
                             const WantedAnswer& wanted) {
  if (head.etag.size() > kEtagSizeBytesMax) {
    return Refused(absl::StrCat("an ETag of ", head.etag.size(), " bytes"),
                   absl::StrCat("at most ", kEtagSizeBytesMax));
  }
  // First: another object also has another size.
  if (!wanted.etag.empty() && !head.etag.empty() && head.etag != wanted.etag) {
    return absl::AbortedError(
        absl::StrCat("the store answered ETag ", PrintableText(head.etag),
                     ", expected ", PrintableText(wanted.etag)));
  }
  if (wanted.range.has_value()) {
    if (head.status != kPartialContent) {
      return Refused(absl::StrCat(head.status, " to a request for a range"),
                     "206: it does not support ranges");
    }
    const auto found = ParseContentRange(head.content_range);
    if (found != wanted.range) {
      return Refused(absl::StrCat("Content-Range \"",
                                  PrintableText(head.content_range), "\""),
                     absl::StrCat("\"", RangeText(*wanted.range), "\""));
    }
    const uint64_t size_bytes = wanted.range->last - wanted.range->first + 1;
    if (head.content_length.has_value() && *head.content_length != size_bytes) {
      return Refused(absl::StrCat("Content-Length ", *head.content_length),
                     absl::StrCat(size_bytes));
    }
  } else {
    if (head.status != kOk) {
      return Refused(absl::StrCat(head.status, " to a request without a range"),
                     "200");
    }
    if (head.content_length.value_or(0) > wanted.size_bytes_max) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the store answered an object of ", *head.content_length,
                       " bytes, expected at most ", wanted.size_bytes_max));
    }
  }
  if (!head.content_encoding.empty() &&
      !absl::EqualsIgnoreCase(head.content_encoding, "identity")) {
    return Refused(absl::StrCat("Content-Encoding \"",
                                PrintableText(head.content_encoding), "\""),
                   "the object as it is");
  }
  if (head.etag.empty()) {
    return Refused("without an ETag", "one, to notice that an object changes");
  }
  return absl::OkStatus();
}

}  // namespace quire
