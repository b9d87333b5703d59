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
      ", in seconds or with a unit as in 500ms, 10s, 2m or 1h30m");
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
    is_time = absl::ParseDuration(trimmed, &duration);
  }
  if (!is_time || duration < range.min || duration > range.max) {
    return absl::InvalidArgumentError(
        absl::StrCat(Describe(range), ", got ", QuotedText(text)));
  }
  return duration;
}

}  // namespace quire
