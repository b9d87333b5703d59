// SPDX-License-Identifier: Apache-2.0
#include "codecs/base/duration_text.h"

#include <cmath>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/printable_text.h"

namespace quire {
namespace {

std::string Describe(const DurationRange& range) {
  const bool is_bounded = range.max != absl::InfiniteDuration();
  return absl::StrCat(
      "must be a time",
      is_bounded || range.min > absl::ZeroDuration()
          ? absl::StrCat(is_bounded ? " from " : " of at least ",
                         absl::FormatDuration(range.min))
          : "",
      is_bounded ? absl::StrCat(" to ", absl::FormatDuration(range.max)) : "",
      ", in seconds or with a unit as in 500ms, 10s, 2m, 1h30m or 14d");
}

bool StartsWithNumber(absl::string_view text) {
  return !text.empty() &&
         (absl::ascii_isdigit(static_cast<unsigned char>(text.front())) ||
          text.front() == '.');
}

// absl::ParseDuration() with days before the other units.
bool ParseWithUnits(absl::string_view text, absl::Duration& duration) {
  const size_t day = text.find('d');
  if (day == absl::string_view::npos) {
    return absl::ParseDuration(text, &duration);
  }
  const absl::string_view rest = text.substr(day + 1);
  double days = 0;
  absl::Duration others;
  if (!StartsWithNumber(text) ||
      !absl::SimpleAtod(text.substr(0, day), &days) ||
      !(rest.empty() ||
        (StartsWithNumber(rest) && absl::ParseDuration(rest, &others)))) {
    return false;
  }
  duration = days * absl::Hours(24) + others;
  return true;
}

}  // namespace

absl::StatusOr<absl::Duration> ParseDurationText(absl::string_view text,
                                                 const DurationRange& range) {
  const absl::string_view trimmed = absl::StripAsciiWhitespace(text);
  absl::Duration duration;
  double seconds = 0;
  bool is_time = true;
  if (absl::SimpleAtod(trimmed, &seconds)) {
    is_time = !std::isnan(seconds);
    duration = is_time ? absl::Seconds(seconds) : absl::ZeroDuration();
  } else {
    is_time = ParseWithUnits(trimmed, duration);
  }
  if (!is_time || duration < range.min || duration > range.max) {
    return absl::InvalidArgumentError(
        absl::StrCat(Describe(range), ", got ", QuotedText(text)));
  }
  return duration;
}

}  // namespace quire
