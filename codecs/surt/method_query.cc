// SPDX-License-Identifier: Apache-2.0
#include "codecs/surt/method_query.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "codecs/base/bytes.h"
#include "codecs/base/header_fields.h"
#include "codecs/base/printable_text.h"

#include "nlohmann/json.hpp"

namespace quire {
namespace {

using Arguments = std::vector<std::pair<std::string, std::string>>;

// As browsers send the values of forms.
std::string FormEscaped(absl::string_view text) {
  constexpr absl::string_view kDigits = "0123456789ABCDEF";
  std::string escaped;
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    if (absl::ascii_isalnum(byte) || c == '_' || c == '.' || c == '-' ||
        c == '~') {
      escaped.push_back(c);
    } else if (c == ' ') {
      escaped.push_back('+');
    } else {
      escaped.push_back('%');
      escaped.push_back(kDigits[byte >> 4]);
      escaped.push_back(kDigits[byte & 0xF]);
    }
  }
  return escaped;
}

std::string Joined(const Arguments& arguments) {
  std::string query;
  for (const auto& [name, value] : arguments) {
    absl::StrAppend(&query, query.empty() ? "" : "&", FormEscaped(name), "=",
                    FormEscaped(value));
  }
  return query;
}

// One pass over escapes and plus signs.
std::string FormUnescaped(absl::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    int byte = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 3, byte, 16)
                .ptr == text.data() + i + 3) {
      plain.push_back(static_cast<char>(byte));
      i += 2;
    } else {
      plain.push_back(text[i] == '+' ? ' ' : text[i]);
    }
  }
  return plain;
}

std::string BinaryQuery(absl::string_view body) {
  // Four characters for three bytes.
  return absl::StrCat(
      "__wb_post_data=",
      absl::Base64Escape(body.substr(0, kMethodQuerySizeBytesMax / 4 * 3)));
}

// --- JSON.

// A float as Python's str() writes it.
std::string FloatText(double number) {
  std::array<char, 32> digits_and_exponent;
  const auto end =
      std::to_chars(digits_and_exponent.data(),
                    digits_and_exponent.data() + digits_and_exponent.size(),
                    std::fabs(number), std::chars_format::scientific)
          .ptr;
  const absl::string_view text(
      digits_and_exponent.data(),
      static_cast<size_t>(end - digits_and_exponent.data()));
  const size_t mark = text.find('e');
  int exponent = 0;
  if (mark == text.npos ||
      !absl::SimpleAtoi(absl::StripPrefix(text.substr(mark + 1), "+"),
                        &exponent)) {
    return std::string(text);
  }
  std::string digits(text.substr(0, mark));
  digits.erase(1, digits.find('.') == std::string::npos ? 0 : 1);
  const std::string sign = std::signbit(number) ? "-" : "";
  if (exponent < -4 || exponent >= 16) {
    const std::string power = absl::StrCat(std::abs(exponent));
    return absl::StrCat(sign, digits.substr(0, 1), digits.size() > 1 ? "." : "",
                        digits.substr(1), exponent < 0 ? "e-" : "e+",
                        power.size() < 2 ? "0" : "", power);
  }
  if (exponent < 0) {
    return absl::StrCat(sign, "0.",
                        std::string(static_cast<size_t>(-exponent - 1), '0'),
                        digits);
  }
  const auto point = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= point) {
    digits.append(point - digits.size(), '0');
    return absl::StrCat(sign, digits, ".0");
  }
  return absl::StrCat(sign, digits.substr(0, point), ".", digits.substr(point));
}

// Collects the values in JSON that are in an object, by the name of the
// innermost member: repeated names get numbers.
class JsonArguments : public nlohmann::json_sax<nlohmann::json> {
 public:
  // Returns false if `text` is not JSON.
  bool Add(absl::string_view text) {
    names_.clear();
    name_.clear();
    return nlohmann::json::sax_parse(text.begin(), text.end(), this);
  }

  const Arguments& arguments() const { return arguments_; }

  bool null() override { return AddValue("None"); }

  bool boolean(bool value) override {
    return AddValue(value ? "True" : "False");
  }

  bool number_integer(number_integer_t value) override {
    return AddValue(absl::StrCat(value));
  }

  bool number_unsigned(number_unsigned_t value) override {
    return AddValue(absl::StrCat(value));
  }

  bool number_float(number_float_t value, const string_t& text) override {
    // Integers of more than 64 bits, too.
    return AddValue(text.find_first_of(".eE") == std::string::npos
                        ? text
                        : FloatText(value));
  }

  bool string(string_t& value) override { return AddValue(value); }

  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override {
    names_.push_back(name_);
    return true;
  }

  bool key(string_t& name) override {
    name_ = name;
    return true;
  }

  bool end_object() override {
    name_ = std::move(names_.back());
    names_.pop_back();
    return true;
  }

  bool start_array(std::size_t) override { return true; }

  bool end_array() override { return true; }

  bool parse_error(std::size_t, const std::string&,
                   const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  bool AddValue(std::string value) {
    if (name_.empty()) {
      return true;
    }
    std::string name = name_;
    if (!used_.insert(name).second) {
      int& count = repeated_[name_];
      count = std::max(count, 1) + 1;
      name = absl::StrCat(name_, ".", count, "_");
      used_.insert(name);
    }
    arguments_.emplace_back(std::move(name), std::move(value));
    return true;
  }

  Arguments arguments_;
  std::set<std::string> used_;
  std::map<std::string, int> repeated_;
  // Names of the current member, and of those around it.
  std::string name_;
  std::vector<std::string> names_;
};

// Unset if the body is neither JSON nor lines of JSON.
std::optional<std::string> JsonQuery(absl::string_view body) {
  JsonArguments whole;
  if (whole.Add(body)) {
    return Joined(whole.arguments());
  }
  JsonArguments lines;
  if (!absl::StrContains(body, '\n')) {
    return std::nullopt;
  }
  for (const absl::string_view line : absl::StrSplit(body, '\n')) {
    if (!lines.Add(line)) {
      return std::nullopt;
    }
  }
  return Joined(lines.arguments());
}

// --- Forms of several parts.

// Value of a parameter of a header field, without quotes; empty without one.
absl::string_view Parameter(absl::string_view value, absl::string_view name) {
  for (absl::string_view part : absl::StrSplit(value, ';')) {
    part = absl::StripAsciiWhitespace(part);
    if (absl::StartsWithIgnoreCase(part, name) &&
        part.substr(name.size(), 1) == "=") {
      part.remove_prefix(name.size() + 1);
      if (absl::ConsumePrefix(&part, "\"")) {
        absl::ConsumeSuffix(&part, "\"");
      }
      return part;
    }
  }
  return {};
}

// Name of the part of a form with these header lines; empty without one.
std::string PartName(absl::string_view header) {
  while (const std::optional<HeaderField> field = TakeHeaderField(header)) {
    if (absl::EqualsIgnoreCase(field->name, "content-disposition")) {
      return std::string(Parameter(field->value, "name"));
    }
  }
  return "";
}

// Unset if it has no boundary, or no part.
std::optional<std::string> MultipartQuery(absl::string_view content_type,
                                          absl::string_view body) {
  const absl::string_view boundary = Parameter(content_type, "boundary");
  if (boundary.empty()) {
    return std::nullopt;
  }
  const std::string delimiter = absl::StrCat("\n--", boundary);
  Arguments arguments;
  // Where the line of the last delimiter begins.
  size_t at = 0;
  if (!absl::StartsWith(body, absl::string_view(delimiter).substr(1))) {
    at = body.find(delimiter);
  }
  while (at != body.npos) {
    const size_t line_end = body.find('\n', at + 1);
    at = line_end == body.npos ? line_end : body.find(delimiter, line_end);
    if (at == body.npos || at == line_end) {
      continue;
    }
    absl::string_view part = body.substr(line_end + 1, at - line_end - 1);
    absl::ConsumeSuffix(&part, "\r");
    const size_t header_size = FindHeaderEnd(AsBytes(part)).value_or(0);
    std::string name = PartName(part.substr(0, header_size));
    if (!name.empty()) {
      arguments.emplace_back(std::move(name), part.substr(header_size));
    }
  }
  return arguments.empty() ? std::nullopt : std::optional(Joined(arguments));
}

std::string BodyQuery(absl::string_view content_type, absl::string_view body) {
  if (body.empty()) {
    return "";
  }
  const bool is_whole = body.size() < kMethodBodySizeBytesMax;
  std::optional<std::string> query;
  if (absl::StartsWithIgnoreCase(content_type,
                                 "application/x-www-form-urlencoded")) {
    if (IsUtf8(body)) {
      query = FormUnescaped(body.substr(0, 3 * kMethodQuerySizeBytesMax));
    }
  } else if (absl::StartsWithIgnoreCase(content_type, "multipart/")) {
    query = is_whole ? MultipartQuery(content_type, body) : std::nullopt;
  } else if (absl::StartsWithIgnoreCase(content_type, "application/json")) {
    query = is_whole ? JsonQuery(body).value_or("") : "";
  } else if (absl::StartsWithIgnoreCase(content_type, "text/plain")) {
    query = is_whole ? JsonQuery(body) : std::nullopt;
  }
  return query.has_value() ? *std::move(query) : BinaryQuery(body);
}

}  // namespace

bool HasMethodKey(absl::string_view method) {
  return !method.empty() && method.size() <= kMethodSizeBytesMax &&
         std::ranges::all_of(method, absl::ascii_isalpha) &&
         !absl::EqualsIgnoreCase(method, "GET");
}

bool HasMethodQuery(absl::string_view method) {
  return absl::EqualsIgnoreCase(method, "POST") ||
         absl::EqualsIgnoreCase(method, "PUT");
}

std::string UrlWithMethod(absl::string_view url, absl::string_view method,
                          absl::string_view content_type,
                          absl::string_view body) {
  std::string query;
  if (HasMethodQuery(method)) {
    query = BodyQuery(content_type, body).substr(0, kMethodQuerySizeBytesMax);
  }
  return absl::StrCat(url, absl::StrContains(url, '?') ? "&" : "?",
                      "__wb_method=", method, query.empty() ? "" : "&", query);
}

}  // namespace quire
