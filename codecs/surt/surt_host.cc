// SPDX-License-Identifier: Apache-2.0
#include "codecs/surt/surt_host.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "codecs/base/printable_text.h"

namespace quire {
namespace {

// Longer labels are no names, and keep a host from having a name in Punycode.
constexpr size_t kLabelSizeBytesMax = 63;

int HexDigit(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

// Characters of well-formed UTF-8.
std::vector<uint32_t> CodePoints(absl::string_view text) {
  std::vector<uint32_t> points;
  while (!text.empty()) {
    const size_t size = Utf8SequenceSize(text);
    const auto first = static_cast<uint8_t>(text[0]);
    uint32_t point = size == 1 ? first : first & (0x7FU >> size);
    for (size_t i = 1; i < size; ++i) {
      point = point << 6 | (static_cast<uint8_t>(text[i]) & 0x3FU);
    }
    points.push_back(point);
    text.remove_prefix(size);
  }
  return points;
}

// Bias of RFC 3492, section 6.1.
uint32_t AdaptBias(uint32_t delta, uint32_t point_count, bool is_first) {
  delta = is_first ? delta / 700 : delta / 2;
  delta += delta / point_count;
  uint32_t k = 0;
  for (; delta > 455; k += 36) {
    delta /= 35;
  }
  return k + 36 * delta / (delta + 38);
}

char PunycodeDigit(uint32_t digit) {
  return static_cast<char>(digit < 26 ? 'a' + digit : '0' + (digit - 26));
}

void AppendPunycodeNumber(uint32_t number, uint32_t bias, std::string& out) {
  for (uint32_t k = 36;; k += 36) {
    const uint32_t threshold = k <= bias ? 1 : std::min(k - bias, 26U);
    if (number < threshold) {
      out.push_back(PunycodeDigit(number));
      return;
    }
    out.push_back(
        PunycodeDigit(threshold + (number - threshold) % (36 - threshold)));
    number = (number - threshold) / (36 - threshold);
  }
}

// RFC 3492, section 6.3. With labels of this size no number overflows.
std::string Punycode(absl::string_view label) {
  const std::vector<uint32_t> points = CodePoints(label);
  std::string out = "xn--";
  for (const uint32_t point : points) {
    if (point < 0x80) {
      out.push_back(static_cast<char>(point));
    }
  }
  const auto basic_count = static_cast<uint32_t>(out.size() - 4);
  if (basic_count > 0) {
    out.push_back('-');
  }
  uint32_t next = 0x80;
  uint32_t delta = 0;
  uint32_t bias = 72;
  for (uint32_t done = basic_count; done < points.size();) {
    uint32_t least = UINT32_MAX;
    for (const uint32_t point : points) {
      least = point >= next ? std::min(least, point) : least;
    }
    delta += (least - next) * (done + 1);
    next = least;
    for (const uint32_t point : points) {
      if (point < next) {
        ++delta;
      } else if (point == next) {
        AppendPunycodeNumber(delta, bias, out);
        bias = AdaptBias(delta, done + 1, done == basic_count);
        delta = 0;
        ++done;
      }
    }
    ++delta;
    ++next;
  }
  return out;
}

bool IsAscii(absl::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<uint8_t>(c) < 0x80; });
}

// A number in decimal or, with a zero in front, in octal, up to `max`.
std::optional<uint64_t> AddressNumber(absl::string_view text, uint64_t max) {
  const uint32_t base = text.size() > 1 && text[0] == '0' ? 8 : 10;
  uint64_t number = 0;
  for (const char c : text) {
    const auto digit = static_cast<uint32_t>(c - '0');
    if (digit >= base) {
      return std::nullopt;
    }
    number = number * base + digit;
    if (number > max) {
      return std::nullopt;
    }
  }
  return text.empty() ? std::nullopt : std::optional(number);
}

// The four parts of an IPv4 address; none if it is not one.
std::vector<std::string> AddressParts(
    const std::vector<absl::string_view>& labels) {
  std::vector<std::string> parts;
  if (labels.size() == 1) {
    const std::optional<uint64_t> number = AddressNumber(labels[0], UINT32_MAX);
    for (int shift = 24; number.has_value() && shift >= 0; shift -= 8) {
      parts.push_back(absl::StrCat(*number >> shift & 0xFF));
    }
    return parts;
  }
  for (const absl::string_view label : labels) {
    const std::optional<uint64_t> number = AddressNumber(label, 255);
    if (!number.has_value() || labels.size() != 4) {
      return {};
    }
    parts.push_back(absl::StrCat(*number));
  }
  return parts;
}

// Removes "www." or "www12.", unless nothing else is there.
absl::string_view WithoutWww(absl::string_view host) {
  if (host.substr(0, 3) != "www") {
    return host;
  }
  size_t end = 3;
  while (end < host.size() &&
         absl::ascii_isdigit(static_cast<uint8_t>(host[end]))) {
    ++end;
  }
  return end + 1 < host.size() && host[end] == '.' ? host.substr(end + 1)
                                                   : host;
}

}  // namespace

std::string DecodeEscapes(absl::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (const char c : text) {
    decoded.push_back(c);
    // A decoded byte may end another escape.
    while (decoded.size() >= 3 && decoded[decoded.size() - 3] == '%') {
      const int high = HexDigit(decoded[decoded.size() - 2]);
      const int low = HexDigit(decoded.back());
      if (high < 0 || low < 0) {
        break;
      }
      decoded.resize(decoded.size() - 2);
      decoded.back() = static_cast<char>(high * 16 + low);
    }
  }
  return decoded;
}

std::string EncodeEscapes(absl::string_view text) {
  constexpr absl::string_view kDigits = "0123456789abcdef";
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    if (byte > 0x20 && byte < 0x7F && c != '#' && c != '%') {
      encoded.push_back(c);
    } else {
      encoded.push_back('%');
      encoded.push_back(kDigits[byte >> 4]);
      encoded.push_back(kDigits[byte & 0xF]);
    }
  }
  return encoded;
}

std::string SurtHost(absl::string_view host) {
  std::string decoded = DecodeEscapes(host);
  absl::AsciiStrToLower(&decoded);
  if (!decoded.empty() && decoded.front() == '[') {
    const absl::string_view address =
        absl::string_view(decoded).substr(1, decoded.find(']') - 1);
    return EncodeEscapes(address);
  }
  std::vector<absl::string_view> labels =
      absl::StrSplit(decoded, '.', absl::SkipEmpty());
  std::vector<std::string> parts = AddressParts(labels);
  if (parts.empty()) {
    const std::string name = absl::StrJoin(labels, ".");
    labels = absl::StrSplit(WithoutWww(name), '.', absl::SkipEmpty());
    const bool has_names =
        IsUtf8(name) &&
        std::all_of(labels.begin(), labels.end(), [](absl::string_view label) {
          return label.size() <= kLabelSizeBytesMax;
        });
    for (const absl::string_view label : labels) {
      parts.push_back(EncodeEscapes(
          has_names && !IsAscii(label) ? Punycode(label) : std::string(label)));
    }
  }
  std::reverse(parts.begin(), parts.end());
  return absl::StrJoin(parts, ",");
}

}  // namespace quire
