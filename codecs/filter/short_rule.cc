// SPDX-License-Identifier: Apache-2.0
#include "codecs/filter/short_rule.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "codecs/filter/field_value.h"
#include "codecs/filter/filter.h"

namespace quire {
namespace {

constexpr size_t kShownRuleBytesMax = 100;
constexpr absl::string_view kPeriodMark = "..";
constexpr int64_t kSecondUs = 1'000'000;

absl::Status FoundInRule(absl::string_view found, absl::string_view expected) {
  return absl::InvalidArgumentError(
      absl::StrCat("found ", QuotedText(found, kShownRuleBytesMax),
                   ", expected ", expected));
}

bool HasOnlyDigits(absl::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c));
  });
}

// A time, and the end of the period that it names, which is not in that;
// nothing: after the year 9999.
struct NamedPeriod {
  FieldTime begin;
  std::optional<FieldTime> end;
};

// Digits of a year, a month and so on, of which the first `count` are given.
struct TimeDigits {
  std::array<int, 6> values = {1, 1, 1, 0, 0, 0};
  size_t count = 0;
};

std::optional<FieldTime> TimeOf(const std::array<int, 6>& values) {
  const auto two = [](int number) {
    return absl::StrCat(absl::Dec(number, absl::kZeroPad2));
  };
  return ParseFieldTime(absl::StrCat(absl::Dec(values[0], absl::kZeroPad4), "-",
                                     two(values[1]), "-", two(values[2]), "T",
                                     two(values[3]), ":", two(values[4]), ":",
                                     two(values[5]), "Z"));
}

// Parses "2019", "2019-05", "2019-05-31" and "20190531123045".
std::optional<TimeDigits> DigitsOf(absl::string_view text) {
  std::string digits(text);
  if (text.size() == 7 || text.size() == 10) {
    const bool has_marks =
        text[4] == '-' && (text.size() == 7 || text[7] == '-');
    if (has_marks) {
      digits = absl::StrJoin(absl::StrSplit(text, '-'), "");
    }
  }
  if (digits.size() < 4 || digits.size() > 14 || digits.size() % 2 != 0 ||
      !HasOnlyDigits(digits)) {
    return std::nullopt;
  }
  TimeDigits parsed;
  for (size_t at = 0; at < digits.size();) {
    const size_t size = at == 0 ? 4 : 2;
    if (!absl::SimpleAtoi(absl::string_view(digits).substr(at, size),
                          &parsed.values[parsed.count++])) {
      return std::nullopt;
    }
    at += size;
  }
  return parsed;
}

// The time `us` later.
std::optional<FieldTime> Later(FieldTime time, int64_t us) {
  const FieldTime later = {time.us + us};
  return ParseFieldTime(FormatFieldTime(later)).has_value()
             ? std::optional(later)
             : std::nullopt;
}

std::optional<NamedPeriod> ParsePeriod(absl::string_view text) {
  const std::optional<TimeDigits> digits = DigitsOf(text);
  if (!digits.has_value()) {
    std::optional<FieldTime> time = ParseFieldTime(text);
    if (!time.has_value()) {
      time = ParseFieldTime(absl::StrCat(text, "Z"));
    }
    if (!time.has_value()) {
      return std::nullopt;
    }
    const bool has_fraction = absl::StrContains(text, '.');
    return NamedPeriod{*time, Later(*time, has_fraction ? 1 : kSecondUs)};
  }
  const std::optional<FieldTime> begin = TimeOf(digits->values);
  if (!begin.has_value()) {
    return std::nullopt;
  }
  std::array<int, 6> next = digits->values;
  switch (digits->count) {
    case 1:
      ++next[0];
      return NamedPeriod{*begin, next[0] > 9999 ? std::nullopt : TimeOf(next)};
    case 2:
      next[0] += next[1] / 12;
      next[1] = next[1] % 12 + 1;
      return NamedPeriod{*begin, next[0] > 9999 ? std::nullopt : TimeOf(next)};
    default: {
      constexpr std::array<int64_t, 4> kUnits = {86'400, 3600, 60, 1};
      return NamedPeriod{*begin,
                         Later(*begin, kUnits[digits->count - 3] * kSecondUs)};
    }
  }
}

absl::StatusOr<NamedPeriod> ParsePeriodOf(absl::string_view text) {
  const std::optional<NamedPeriod> period = ParsePeriod(text);
  if (!period.has_value()) {
    return FoundInRule(text,
                       "a time such as 2019, 2019-05, 2019-05-31, "
                       "2019-05-31T12:30:45Z or 20190531123045");
  }
  return *period;
}

absl::StatusOr<std::string> TimeFilter(absl::string_view text) {
  const size_t mark = text.find(kPeriodMark);
  absl::string_view from = text.substr(0, mark);
  absl::string_view to =
      mark == text.npos ? text : text.substr(mark + kPeriodMark.size());
  if (from.empty() && to.empty()) {
    return FoundInRule(text, "a time before or after the dots");
  }
  std::vector<std::string> terms;
  std::optional<FieldTime> begin;
  if (!from.empty()) {
    QUIRE_ASSIGN_OR_RETURN(const NamedPeriod period, ParsePeriodOf(from));
    begin = period.begin;
    terms.push_back(absl::StrCat("time >= ", FormatFieldTime(*begin)));
  }
  if (!to.empty()) {
    QUIRE_ASSIGN_OR_RETURN(const NamedPeriod period, ParsePeriodOf(to));
    if (begin.has_value() && period.begin.us < begin->us) {
      return FoundInRule(text, "a period that does not end before it begins");
    }
    if (period.end.has_value()) {
      terms.push_back(absl::StrCat("time < ", FormatFieldTime(*period.end)));
    } else if (terms.empty()) {
      terms.emplace_back("time is not null");
    }
  }
  return absl::StrJoin(terms, " and ");
}

absl::StatusOr<std::string> HostFilter(absl::string_view word,
                                       absl::string_view name) {
  std::string filter = absl::StrCat(word, " ", FormatField(FieldView(name)));
  const absl::Status status = Filter::Parse(filter).status();
  if (!status.ok()) {
    // Without the column, which is that of the filter.
    constexpr absl::string_view kExpected = "expected ";
    const absl::string_view message = status.message();
    const size_t at = message.find(kExpected);
    return FoundInRule(name, at == message.npos
                                 ? message
                                 : message.substr(at + kExpected.size()));
  }
  return filter;
}

absl::StatusOr<std::string> StatusFilter(absl::string_view code) {
  const size_t digit_count =
      std::min(code.find_first_not_of("0123456789"), code.size());
  const bool is_code =
      code.size() == 3 && digit_count > 0 &&
      code.find_first_not_of("xX", digit_count) == absl::string_view::npos;
  if (!is_code) {
    return FoundInRule(code, "an HTTP status such as 404, 40x or 4xx");
  }
  int first = 0;
  int count = 1;
  for (size_t i = 0; i < code.size(); ++i) {
    first = first * 10 + (i < digit_count ? code[i] - '0' : 0);
    count *= i < digit_count ? 1 : 10;
  }
  return count == 1 ? absl::StrCat("status = ", first)
                    : absl::StrCat("status >= ", first, " and status < ",
                                   first + count);
}

absl::StatusOr<std::string> DigestFilter(absl::string_view digest) {
  constexpr absl::string_view kSha1 = "sha1:";
  constexpr size_t kBase32Size = 32;
  const absl::string_view value = absl::StartsWithIgnoreCase(digest, kSha1)
                                      ? digest.substr(kSha1.size())
                                      : digest;
  const bool is_sha1 =
      value.size() == kBase32Size &&
      std::all_of(value.begin(), value.end(), [](char c) {
        return absl::ascii_isalpha(static_cast<unsigned char>(c)) ||
               (c >= '2' && c <= '7');
      });
  if (!is_sha1 && !absl::StrContains(digest, ':')) {
    return FoundInRule(digest,
                       "a digest as records state it, such as "
                       "sha1:OB3QTUZLBNUR7BXZQ4OPLCKEKUZZNKRJ");
  }
  const std::string stated =
      is_sha1 ? absl::StrCat(kSha1, absl::AsciiStrToUpper(value))
              : std::string(digest);
  return absl::StrCat("digest = ",
                      FormatField(FieldView(absl::string_view(stated))));
}

absl::StatusOr<std::string> TermFilter(absl::string_view word,
                                       absl::string_view value) {
  return word == "status"   ? StatusFilter(value)
         : word == "digest" ? DigestFilter(value)
         : word == "time"   ? TimeFilter(value)
                            : HostFilter(word, value);
}

// A period without its word.
bool IsPeriod(absl::string_view word) {
  return !word.empty() &&
         (absl::ascii_isdigit(static_cast<unsigned char>(word.front())) ||
          absl::StartsWith(word, kPeriodMark));
}

}  // namespace

bool IsShortRuleWord(absl::string_view word) {
  return word == "host" || word == "domain" || word == "status" ||
         word == "digest" || word == "time";
}

absl::StatusOr<std::string> FilterOfShortRule(absl::string_view rule) {
  const std::vector<absl::string_view> words =
      absl::StrSplit(rule, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  std::vector<absl::string_view> kinds;
  std::vector<std::string> terms;
  for (size_t i = 0; i < words.size(); ++i) {
    absl::string_view word = words[i];
    absl::string_view value = word;
    if (i > 0 && IsPeriod(word)) {
      word = "time";
    } else if (!IsShortRuleWord(word)) {
      return FoundInRule(word, i == 0 ? "host, domain, status, digest or time"
                                      : "host, domain, status, digest, time "
                                        "or a period such as 2019..2021");
    } else if (i + 1 == words.size()) {
      return FoundInRule(rule, absl::StrCat("a value after ", word));
    } else {
      value = words[++i];
    }
    const absl::string_view kind = word == "host" ? "domain" : word;
    if (std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) {
      return FoundInRule(
          rule, absl::StrCat("one ", kind == "domain" ? "host or domain" : kind,
                             "; write a rule for each"));
    }
    kinds.push_back(kind);
    QUIRE_ASSIGN_OR_RETURN(std::string term, TermFilter(word, value));
    terms.push_back(std::move(term));
  }
  if (terms.empty()) {
    return FoundInRule(rule, "a rule such as domain news.test 2019..2021");
  }
  return absl::StrJoin(terms, " and ");
}

std::string ReplaceShortRule(std::string& rule) {
  absl::StatusOr<std::string> filter = FilterOfShortRule(rule);
  if (!filter.ok()) {
    return std::string(filter.status().message());
  }
  rule = *std::move(filter);
  return "";
}

}  // namespace quire
