// SPDX-License-Identifier: Apache-2.0
#include "client/quire/capture_time.h"

#include <array>
#include <cstddef>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"

#include "codecs/base/date_digits.h"
#include "codecs/base/printable_text.h"

namespace quire {
namespace {

constexpr size_t kYearDigits = 4;
constexpr size_t kFieldDigits = 2;
// Fractions of a second are truncated to milliseconds.
constexpr int kMillisecondDigits = 3;

// Year, month, day, hour, minute, second; the first `count` are given.
struct Fields {
  std::array<int64_t, 6> values = {1970, 1, 1, 0, 0, 0};
  size_t count = 0;
  // The named part of the second.
  CapturePeriod of_second = {.first_ms = 0, .last_ms = 999};
  // Local time minus UTC.
  int64_t zone_seconds = 0;
};

absl::CivilSecond ToCivil(const std::array<int64_t, 6>& values) {
  return absl::CivilSecond(values[0], values[1], values[2], values[3],
                           values[4], values[5]);
}

int64_t UnixSeconds(absl::CivilSecond civil) {
  return absl::ToUnixSeconds(absl::FromCivil(civil, absl::UTCTimeZone()));
}

// Removes the fraction of a second after its point: up to nine digits.
std::optional<CapturePeriod> TakeFraction(absl::string_view& text) {
  int64_t first_ms = 0;
  int64_t unit_ms = 1000;
  int digit_count = 0;
  for (; digit_count < 9; ++digit_count) {
    const std::optional<int64_t> digit = TakeNumber(text, 1);
    if (!digit.has_value()) {
      break;
    }
    if (digit_count < kMillisecondDigits) {
      unit_ms /= 10;
      first_ms += *digit * unit_ms;
    }
  }
  return digit_count == 0
             ? std::nullopt
             : std::optional(CapturePeriod{first_ms, first_ms + unit_ms - 1});
}

// Removes "Z", "+01:00", "+0100", "+01" or nothing from the front; returns the
// offset from UTC.
std::optional<int64_t> TakeZoneSeconds(absl::string_view& text) {
  const bool is_west = TakeMark(text, "-");
  if (!is_west && !TakeMark(text, "+")) {
    TakeMark(text, "Zz");
    return 0;
  }
  const std::optional<int64_t> hours = TakeNumber(text, kFieldDigits);
  const bool has_minutes = TakeMark(text, ":") || !text.empty();
  const std::optional<int64_t> minutes =
      has_minutes ? TakeNumber(text, kFieldDigits) : 0;
  if (!hours.has_value() || !minutes.has_value() || *hours > 23 ||
      *minutes > 59) {
    return std::nullopt;
  }
  return (*hours * 60 + *minutes) * 60 * (is_west ? -1 : 1);
}

std::optional<Fields> TakeFields(absl::string_view& text) {
  Fields fields;
  const std::optional<int64_t> year = TakeNumber(text, kYearDigits);
  if (!year.has_value()) {
    return std::nullopt;
  }
  fields.values[0] = *year;
  fields.count = 1;
  const bool is_compact =
      !text.empty() &&
      absl::ascii_isdigit(static_cast<unsigned char>(text.front()));
  constexpr std::array<absl::string_view, 6> kMarks = {"",    "-", "-",
                                                       "Tt ", ":", ":"};
  while (fields.count < fields.values.size() && !text.empty()) {
    absl::string_view rest = text;
    if (!is_compact && !TakeMark(rest, kMarks[fields.count])) {
      break;
    }
    const std::optional<int64_t> value = TakeNumber(rest, kFieldDigits);
    if (!value.has_value()) {
      return std::nullopt;
    }
    fields.values[fields.count++] = *value;
    text = rest;
  }
  if (fields.count == fields.values.size() && !is_compact &&
      TakeMark(text, ".,")) {
    const std::optional<CapturePeriod> fraction = TakeFraction(text);
    if (!fraction.has_value()) {
      return std::nullopt;
    }
    fields.of_second = *fraction;
  }
  // A date has no zone.
  if (fields.count > 3) {
    const std::optional<int64_t> zone_seconds = TakeZoneSeconds(text);
    if (!zone_seconds.has_value()) {
      return std::nullopt;
    }
    fields.zone_seconds = *zone_seconds;
  }
  return fields;
}

}  // namespace

absl::StatusOr<CapturePeriod> ParseCapturePeriod(absl::string_view text) {
  absl::string_view rest = text;
  const std::optional<Fields> fields = TakeFields(rest);
  if (!fields.has_value() || !rest.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a time must look like 2022, 2022-06, 2022-06-15, 2022-06-15T12:30Z, ",
        "2022-06-15T12:30:45Z, 2022-06-15T14:30:45+02:00 or 20220615123045, "
        "in UTC if it has no offset, got ",
        QuotedText(text)));
  }
  const absl::CivilSecond first = ToCivil(fields->values);
  // Civil times carry overflowing fields.
  const std::array<int64_t, 6> carried = {first.year(),   first.month(),
                                          first.day(),    first.hour(),
                                          first.minute(), first.second()};
  if (carried != fields->values) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no such date and time as ", QuotedText(text)));
  }
  std::array<int64_t, 6> next = fields->values;
  ++next[fields->count - 1];
  return CapturePeriod{
      .first_ms = (UnixSeconds(first) - fields->zone_seconds) * 1000 +
                  fields->of_second.first_ms,
      .last_ms =
          (UnixSeconds(ToCivil(next)) - 1 - fields->zone_seconds) * 1000 +
          fields->of_second.last_ms};
}

}  // namespace quire
