// SPDX-License-Identifier: Apache-2.0
#include "codecs/filter/field_value.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <type_traits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "codecs/base/date_digits.h"
#include "codecs/base/printable_text.h"

namespace quire {
namespace {

constexpr std::array<absl::string_view, 6> kTypeNames = {
    "null", "string", "integer", "float", "boolean", "time"};

// Words of the language, then attributes that every document has.
constexpr std::array<absl::string_view, 15> kReservedNames = {
    "and",   "or", "not",     "in",   "is",   "prefix", "null",       "true",
    "false", "id", "ordinal", "size", "time", "type",   "record_type"};

constexpr int64_t kMicrosecondsPerSecond = 1'000'000;
constexpr int64_t kSecondsPerDay = 86'400;

// A date of the Gregorian calendar, of the years 1 to 9999.
struct Date {
  int64_t year = 1;
  int64_t month = 1;
  int64_t day = 1;
};

bool IsLeapYear(int64_t year) {
  return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

int64_t DaysOfMonth(int64_t year, int64_t month) {
  constexpr std::array<int64_t, 12> kDays = {31, 28, 31, 30, 31, 30,
                                             31, 31, 30, 31, 30, 31};
  return kDays[static_cast<size_t>(month - 1)] +
         (month == 2 && IsLeapYear(year) ? 1 : 0);
}

// Days from 0001-01-01 to the first day of `year`.
int64_t DaysBefore(int64_t year) {
  const int64_t years = year - 1;
  return years * 365 + years / 4 - years / 100 + years / 400;
}

// Nothing, if there is no such date.
std::optional<int64_t> DaysSince1970(const Date& date) {
  if (date.month < 1 || date.month > 12 || date.day < 1 ||
      date.day > DaysOfMonth(date.year, date.month)) {
    return std::nullopt;
  }
  int64_t days = DaysBefore(date.year) - DaysBefore(1970) + date.day - 1;
  for (int64_t month = 1; month < date.month; ++month) {
    days += DaysOfMonth(date.year, month);
  }
  return days;
}

Date DateOf(int64_t days_since_1970) {
  int64_t days = days_since_1970 + DaysBefore(1970);
  // Never too late: 400 years have one day less than the divisor.
  Date date = {.year = days * 400 / (DaysBefore(401) + 1) + 1};
  while (DaysBefore(date.year + 1) <= days) {
    ++date.year;
  }
  days -= DaysBefore(date.year);
  while (days >= DaysOfMonth(date.year, date.month)) {
    days -= DaysOfMonth(date.year, date.month++);
  }
  date.day = days + 1;
  return date;
}

std::weak_ordering CompareIntegerWithFloat(int64_t a, double b) {
  // 2^63 and its negative are floats; the largest integer is not.
  constexpr double kEnd = 9223372036854775808.0;
  if (b >= kEnd) {
    return std::weak_ordering::less;
  }
  if (b < -kEnd) {
    return std::weak_ordering::greater;
  }
  const auto whole = static_cast<int64_t>(b);
  if (a != whole) {
    return a <=> whole;
  }
  // Exact: floats from 2^53 on are whole.
  const double fraction = b - static_cast<double>(whole);
  return fraction > 0   ? std::weak_ordering::less
         : fraction < 0 ? std::weak_ordering::greater
                        : std::weak_ordering::equivalent;
}

std::optional<std::weak_ordering> CompareFloats(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) {
    return std::nullopt;
  }
  return a < b   ? std::weak_ordering::less
         : a > b ? std::weak_ordering::greater
                 : std::weak_ordering::equivalent;
}

std::weak_ordering Reversed(std::weak_ordering order) {
  return 0 <=> order;
}

// Removes "2024-01-31"; returns its first second.
std::optional<int64_t> TakeDateSeconds(absl::string_view& text) {
  const std::optional<int> year = TakeNumber(text, 4);
  if (!year.has_value() || *year == 0 || !TakeMark(text, "-")) {
    return std::nullopt;
  }
  const std::optional<int> month = TakeNumber(text, 2);
  if (!month.has_value() || !TakeMark(text, "-")) {
    return std::nullopt;
  }
  const std::optional<int> day = TakeNumber(text, 2);
  if (!day.has_value()) {
    return std::nullopt;
  }
  const std::optional<int64_t> days =
      DaysSince1970({.year = *year, .month = *month, .day = *day});
  return days.has_value() ? std::optional(*days * kSecondsPerDay)
                          : std::nullopt;
}

// Removes ".5" if it is there; returns microseconds.
std::optional<int64_t> TakeFractionUs(absl::string_view& text) {
  constexpr int kDigitsMax = 9;
  int64_t us = 0;
  if (!TakeMark(text, ".")) {
    return us;
  }
  int64_t unit_us = kMicrosecondsPerSecond / 10;
  int digit_count = 0;
  for (; digit_count < kDigitsMax; ++digit_count) {
    const std::optional<int> digit = TakeNumber(text, 1);
    if (!digit.has_value()) {
      break;
    }
    us += *digit * unit_us;
    unit_us /= 10;
  }
  return digit_count == 0 ? std::nullopt : std::optional(us);
}

// Removes "Z" or "+02:00"; returns local time minus UTC.
std::optional<int64_t> TakeZoneSeconds(absl::string_view& text) {
  if (TakeMark(text, "Zz")) {
    return 0;
  }
  const bool is_west = TakeMark(text, "-");
  if (!is_west && !TakeMark(text, "+")) {
    return std::nullopt;
  }
  const std::optional<int> hours = TakeNumber(text, 2);
  if (!hours.has_value() || !TakeMark(text, ":")) {
    return std::nullopt;
  }
  const std::optional<int> minutes = TakeNumber(text, 2);
  if (!minutes.has_value() || *hours > 23 || *minutes > 59) {
    return std::nullopt;
  }
  return (int64_t{*hours} * 60 + *minutes) * 60 * (is_west ? -1 : 1);
}

// Removes "12:30:45"; returns seconds of the day.
std::optional<int64_t> TakeClockSeconds(absl::string_view& text) {
  const std::optional<int> hour = TakeNumber(text, 2);
  if (!hour.has_value() || !TakeMark(text, ":")) {
    return std::nullopt;
  }
  const std::optional<int> minute = TakeNumber(text, 2);
  if (!minute.has_value() || !TakeMark(text, ":")) {
    return std::nullopt;
  }
  const std::optional<int> second = TakeNumber(text, 2);
  if (!second.has_value() || *hour > 23 || *minute > 59 || *second > 59) {
    return std::nullopt;
  }
  return (int64_t{*hour} * 60 + *minute) * 60 + *second;
}

std::string FormatFloat(double value) {
  // "-1.7976931348623157e+308" has 24 characters.
  std::array<char, 32> buffer;
  const std::to_chars_result end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  std::string text(buffer.data(), end.ptr);
  if (text.find_first_not_of("-0123456789") == std::string::npos) {
    text += ".0";
  }
  return text;
}

std::string FormatString(absl::string_view text) {
  std::string quoted = "\"";
  while (!text.empty()) {
    const auto byte = static_cast<unsigned char>(text.front());
    const size_t size =
        byte < 0x20 || byte == 0x7f ? 0 : Utf8SequenceSize(text);
    if (byte == '"' || byte == '\\') {
      quoted += '\\';
      quoted += text.front();
    } else if (size > 0) {
      quoted.append(text.data(), size);
    } else {
      absl::StrAppendFormat(&quoted, "\\x%02x", byte);
    }
    text.remove_prefix(std::max<size_t>(size, 1));
  }
  return quoted + '"';
}

}  // namespace

FieldType TypeOf(const FieldView& value) {
  static_assert(
      std::is_same_v<std::variant_alternative_t<5, FieldView>, FieldTime>);
  return static_cast<FieldType>(value.index());
}

FieldView ViewOf(const FieldValue& value) {
  return std::visit(
      [](const auto& v) -> FieldView {
        if constexpr (std::is_same_v<std::decay_t<decltype(v)>, std::string>) {
          return absl::string_view(v);
        } else {
          return v;
        }
      },
      value);
}

FieldValue ValueOf(const FieldView& view) {
  return std::visit(
      [](const auto& v) -> FieldValue {
        if constexpr (std::is_same_v<std::decay_t<decltype(v)>,
                                     absl::string_view>) {
          return std::string(v);
        } else {
          return v;
        }
      },
      view);
}

absl::string_view FieldTypeName(FieldType type) {
  return kTypeNames[static_cast<size_t>(type)];
}

std::optional<FieldType> ParseFieldType(absl::string_view name) {
  for (size_t i = 1; i < kTypeNames.size(); ++i) {
    if (kTypeNames[i] == name) {
      return static_cast<FieldType>(i);
    }
  }
  return std::nullopt;
}

absl::Status CheckFieldName(absl::string_view name) {
  const bool is_word =
      !name.empty() && name.size() <= kFieldNameSizeBytesMax &&
      !absl::ascii_isdigit(static_cast<unsigned char>(name.front())) &&
      name.front() != '.' && std::all_of(name.begin(), name.end(), [](char c) {
        return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' ||
               c == '.';
      });
  if (!is_word) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the name of a field must have 1 to ", kFieldNameSizeBytesMax,
        " letters, digits, _ and ., and begin with a letter or _, such as "
        "lang; got ",
        QuotedText(name)));
  }
  for (const absl::string_view reserved : kReservedNames) {
    if (absl::EqualsIgnoreCase(name, reserved)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the name of a field must not be ", QuotedText(name),
          ", which filters use for something else; choose another, such as "
          "my_",
          name));
    }
  }
  return absl::OkStatus();
}

std::optional<std::weak_ordering> CompareFields(const FieldView& a,
                                                const FieldView& b) {
  const auto* const integer_a = std::get_if<int64_t>(&a);
  const auto* const integer_b = std::get_if<int64_t>(&b);
  const auto* const float_a = std::get_if<double>(&a);
  const auto* const float_b = std::get_if<double>(&b);
  if (integer_a != nullptr && float_b != nullptr) {
    return std::isnan(*float_b)
               ? std::nullopt
               : std::optional(CompareIntegerWithFloat(*integer_a, *float_b));
  }
  if (float_a != nullptr && integer_b != nullptr) {
    return std::isnan(*float_a)
               ? std::nullopt
               : std::optional(
                     Reversed(CompareIntegerWithFloat(*integer_b, *float_a)));
  }
  if (a.index() != b.index()) {
    return std::nullopt;
  }
  switch (TypeOf(a)) {
    case FieldType::kNull:
      return std::nullopt;
    case FieldType::kString: {
      // string_view compares as unsigned bytes.
      const int order = std::get<absl::string_view>(a).compare(
          std::get<absl::string_view>(b));
      return order <=> 0;
    }
    case FieldType::kInteger:
      return *integer_a <=> *integer_b;
    case FieldType::kFloat:
      return CompareFloats(*float_a, *float_b);
    case FieldType::kBoolean:
      return std::get<bool>(a) <=> std::get<bool>(b);
    case FieldType::kTime:
      return std::get<FieldTime>(a).us <=> std::get<FieldTime>(b).us;
  }
  return std::nullopt;
}

std::optional<FieldTime> ParseFieldTime(absl::string_view text) {
  const std::optional<int64_t> date_seconds = TakeDateSeconds(text);
  if (!date_seconds.has_value()) {
    return std::nullopt;
  }
  if (text.empty()) {
    return FieldTime{*date_seconds * kMicrosecondsPerSecond};
  }
  if (!TakeMark(text, "Tt ")) {
    return std::nullopt;
  }
  const std::optional<int64_t> clock_seconds = TakeClockSeconds(text);
  if (!clock_seconds.has_value()) {
    return std::nullopt;
  }
  const std::optional<int64_t> fraction_us = TakeFractionUs(text);
  if (!fraction_us.has_value()) {
    return std::nullopt;
  }
  const std::optional<int64_t> zone_seconds = TakeZoneSeconds(text);
  if (!zone_seconds.has_value() || !text.empty()) {
    return std::nullopt;
  }
  return FieldTime{(*date_seconds + *clock_seconds - *zone_seconds) *
                       kMicrosecondsPerSecond +
                   *fraction_us};
}

std::string FormatFieldTime(FieldTime time) {
  // 0001-01-01 and the end of 9999-12-31.
  constexpr int64_t kFirstUs = -62135596800 * kMicrosecondsPerSecond;
  constexpr int64_t kEndUs = 253402300800 * kMicrosecondsPerSecond;
  if (time.us < kFirstUs || time.us >= kEndUs) {
    return absl::StrCat(time.us);
  }
  constexpr int64_t kDayUs = kSecondsPerDay * kMicrosecondsPerSecond;
  // Rounded down, also before 1970.
  const int64_t of_day_us = (time.us % kDayUs + kDayUs) % kDayUs;
  const Date date = DateOf((time.us - of_day_us) / kDayUs);
  const int64_t second = of_day_us / kMicrosecondsPerSecond;
  const int64_t us = of_day_us % kMicrosecondsPerSecond;
  std::string text =
      absl::StrFormat("%04d-%02d-%02dT%02d:%02d:%02d", date.year, date.month,
                      date.day, second / 3600, second / 60 % 60, second % 60);
  if (us % 1000 != 0) {
    absl::StrAppendFormat(&text, ".%06d", us);
  } else if (us != 0) {
    absl::StrAppendFormat(&text, ".%03d", us / 1000);
  }
  return text + "Z";
}

std::string FormatField(const FieldView& value) {
  switch (TypeOf(value)) {
    case FieldType::kNull:
      return "null";
    case FieldType::kString:
      return FormatString(std::get<absl::string_view>(value));
    case FieldType::kInteger:
      return absl::StrCat(std::get<int64_t>(value));
    case FieldType::kFloat:
      return FormatFloat(std::get<double>(value));
    case FieldType::kBoolean:
      return std::get<bool>(value) ? "true" : "false";
    case FieldType::kTime:
      return FormatFieldTime(std::get<FieldTime>(value));
  }
  return "";
}

}  // namespace quire
