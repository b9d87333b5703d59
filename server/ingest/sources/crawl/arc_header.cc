// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/crawl/arc_header.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "codecs/base/printable_text.h"

namespace quire {
namespace {

// Length of unexpected text in messages.
constexpr size_t kShownLineSizeBytes = 60;
constexpr size_t kUsualDateDigitCount = 14;

}  // namespace

absl::StatusOr<WarcHeader> ParseArcHeader(ByteView line) {
  const std::optional<ArcLine> parts = ParseArcLine(AsText(line));
  if (!parts.has_value()) {
    absl::string_view whole = AsText(line);
    absl::ConsumeSuffix(&whole, "\n");
    absl::ConsumeSuffix(&whole, "\r");
    return absl::DataLossError(absl::StrCat(
        "found ", QuotedText(whole, kShownLineSizeBytes),
        " where an ARC record must start with URL IP-ADDRESS DATE TYPE "
        "LENGTH"));
  }
  WarcHeader header;
  uint64_t length = 0;
  const bool has_length = !absl::StartsWith(parts->length, "-");
  if (has_length && (!absl::SimpleAtoi(parts->length, &length) ||
                     length > static_cast<uint64_t>(INT64_MAX))) {
    return absl::DataLossError(
        absl::StrCat("the length of the record must be at most 2^63 - 1, got ",
                     QuotedText(parts->length, kShownLineSizeBytes)));
  }
  if (has_length) {
    header.content_length = length;
  }
  header.target_uri = std::string(parts->url);
  header.record_type =
      absl::StartsWith(parts->url, kArcMagic) ? "warcinfo" : "response";
  header.date_ms = ParseWarcDate(ArcDateAsWarcDate(parts->date));
  if (!header.date_ms.has_value() ||
      parts->date.size() != kUsualDateDigitCount) {
    header.oddities.push_back(absl::StrCat(
        "its date must be YYYYMMDDhhmmss, got ",
        QuotedText(parts->date, kShownLineSizeBytes),
        header.date_ms.has_value() ? "; it is taken as that minute"
                                   : "; it is kept without a time"));
  }
  if (parts->type.find('/') != absl::string_view::npos) {
    header.media_type = MediaTypeOf(parts->type);
  }
  if (!has_length) {
    header.oddities.push_back(
        absl::StrCat("its length must be a number of bytes, got ",
                     QuotedText(parts->length, kShownLineSizeBytes)));
  }
  return header;
}

bool IsArcStart(absl::string_view text) {
  const size_t end = text.find('\n');
  return end == absl::string_view::npos
             ? BeginsWithScheme(text)
             : ParseArcLine(text.substr(0, end)).has_value();
}

}  // namespace quire
