// SPDX-License-Identifier: Apache-2.0
//
// Parts of written dates and times, for the parsers of their forms: of records
// of a crawl (WARC-Date), of periods that clients give, and of fields (RFC
// 3339). Thread-safe; no allocation.
#ifndef QUIRE_CODECS_BASE_DATE_DIGITS_H_
#define QUIRE_CODECS_BASE_DATE_DIGITS_H_

#include <cstddef>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"

namespace quire {

// Removes exactly `digit_count` decimal digits from the front of `text` and
// returns their number. Returns nullopt, and `text` is unchanged, if there are
// fewer. REQUIRES: digit_count <= 9.
inline std::optional<int> TakeNumber(absl::string_view& text,
                                     size_t digit_count) {
  if (text.size() < digit_count) {
    return std::nullopt;
  }
  int number = 0;
  for (const char c : text.substr(0, digit_count)) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(c))) {
      return std::nullopt;
    }
    number = number * 10 + (c - '0');
  }
  text.remove_prefix(digit_count);
  return number;
}

// Removes one of the characters of `marks` from the front of `text`. Returns
// false if it begins with none.
inline bool TakeMark(absl::string_view& text, absl::string_view marks) {
  if (text.empty() || marks.find(text.front()) == absl::string_view::npos) {
    return false;
  }
  text.remove_prefix(1);
  return true;
}

}  // namespace quire

#endif  // QUIRE_CODECS_BASE_DATE_DIGITS_H_
