// SPDX-License-Identifier: Apache-2.0
#include "codecs/base/arc_line.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace quire {
namespace {

constexpr size_t kDateDigitCount = 14;
constexpr size_t kMinuteDigitCount = 12;
// Digits of other numbers that stand in place of a date.
constexpr size_t kOddDateDigitCountMin = 4;
constexpr size_t kOddDateDigitCountMax = 20;

bool IsNumber(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c));
  });
}

bool IsDate(absl::string_view word) {
  return word.size() == kDateDigitCount && IsNumber(word);
}

bool IsOddDate(absl::string_view word) {
  return word == "null" || word == "-" ||
         (word.size() >= kOddDateDigitCountMin &&
          word.size() <= kOddDateDigitCountMax && IsNumber(word));
}

// True for the characters of an IP address, of version 4 or 6.
bool IsAddress(absl::string_view word) {
  return word.find_first_of(".:") != absl::string_view::npos &&
         std::all_of(word.begin(), word.end(), [](char c) {
           return absl::ascii_isxdigit(static_cast<unsigned char>(c)) ||
                  c == '.' || c == ':';
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

// Sets the parts before the type; `before_length` is the line up to the length.
template <typename IsWanted>
bool FindDate(absl::string_view before_length, IsWanted is_wanted,
              ArcLine& line) {
  absl::string_view rest = before_length;
  while (!rest.empty()) {
    line.date = TakeLastWord(rest);
    absl::string_view url = rest;
    line.address = TakeLastWord(url);
    if (is_wanted(line)) {
      line.url = url;
      return !line.address.empty() && BeginsWithScheme(url);
    }
  }
  return false;
}

}  // namespace

std::optional<ArcLine> ParseArcLine(absl::string_view line) {
  absl::ConsumeSuffix(&line, "\n");
  absl::ConsumeSuffix(&line, "\r");
  absl::string_view before_length = line;
  ArcLine parts;
  parts.length = TakeLastWord(before_length);
  absl::string_view digits = parts.length;
  absl::ConsumePrefix(&digits, "-");
  if (!IsNumber(digits)) {
    return std::nullopt;
  }
  const auto has_date = [](const ArcLine& at) { return IsDate(at.date); };
  const auto has_odd_date = [](const ArcLine& at) {
    return IsOddDate(at.date) && IsAddress(at.address);
  };
  if (!FindDate(before_length, has_date, parts) &&
      !FindDate(before_length, has_odd_date, parts)) {
    return std::nullopt;
  }
  // Views of one line: what is between the date and the length.
  absl::string_view type = before_length.substr(static_cast<size_t>(
      parts.date.data() + parts.date.size() - before_length.data()));
  absl::ConsumePrefix(&type, " ");
  parts.type = type.substr(0, type.find(' '));
  return parts;
}

bool BeginsWithScheme(absl::string_view text) {
  const size_t size = text.substr(0, text.find(':')).size();
  return size > 0 && size < text.size() &&
         absl::ascii_isalpha(static_cast<unsigned char>(text[0])) &&
         std::all_of(text.begin(), text.begin() + size, [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                  c == '+' || c == '-' || c == '.';
         });
}

std::string ArcDateAsWarcDate(absl::string_view date) {
  if (!IsNumber(date) ||
      (date.size() != kDateDigitCount && date.size() != kMinuteDigitCount)) {
    return "";
  }
  return absl::StrCat(
      date.substr(0, 4), "-", date.substr(4, 2), "-", date.substr(6, 2), "T",
      date.substr(8, 2), ":", date.substr(10, 2), ":",
      date.size() == kDateDigitCount ? date.substr(12, 2) : "00", "Z");
}

}  // namespace quire
