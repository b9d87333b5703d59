// SPDX-License-Identifier: Apache-2.0
#include "codecs/base/byte_size.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "codecs/base/printable_text.h"

namespace quire {
namespace {

struct Unit {
  absl::string_view name;
  uint64_t size_bytes;
};

constexpr uint64_t kTiB = kGiB << 10;
constexpr std::array<Unit, 15> kUnits = {{
    {"", 1},
    {"B", 1},
    {"K", kKiB},
    {"M", kMiB},
    {"G", kGiB},
    {"T", kTiB},
    {"KiB", kKiB},
    {"MiB", kMiB},
    {"GiB", kGiB},
    {"TiB", kTiB},
    {"kB", 1000},
    {"MB", uint64_t{1000} * 1000},
    {"GB", uint64_t{1000} * 1000 * 1000},
    {"TB", uint64_t{1000} * 1000 * 1000 * 1000},
    {"bytes", 1},
}};

constexpr std::array<std::pair<const char*, uint64_t>, 4> kBinaryUnits = {
    {{"TiB", kTiB}, {"GiB", kGiB}, {"MiB", kMiB}, {"KiB", kKiB}}};

absl::Status Malformed(absl::string_view text) {
  return absl::InvalidArgumentError(
      absl::StrCat("a size must be a number of bytes, or one with a unit, like "
                   "64KiB, 16MiB or 1.5GiB, got ",
                   QuotedText(text)));
}

absl::Status TooLarge(absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat(
      "a size must be at most 2^63 - 1 bytes, got ", QuotedText(text)));
}

}  // namespace

absl::StatusOr<uint64_t> ParseByteSize(absl::string_view text) {
  const absl::string_view trimmed = absl::StripAsciiWhitespace(text);
  size_t number_end = 0;
  while (
      number_end < trimmed.size() &&
      (absl::ascii_isdigit(static_cast<unsigned char>(trimmed[number_end])) ||
       trimmed[number_end] == '.')) {
    ++number_end;
  }
  const absl::string_view number = trimmed.substr(0, number_end);
  const absl::string_view unit_name =
      absl::StripAsciiWhitespace(trimmed.substr(number_end));
  uint64_t unit_bytes = 0;
  for (const Unit& unit : kUnits) {
    if (absl::EqualsIgnoreCase(unit.name, unit_name)) {
      unit_bytes = unit.size_bytes;
    }
  }
  if (number.empty() || unit_bytes == 0) {
    return Malformed(text);
  }
  uint64_t whole = 0;
  if (absl::SimpleAtoi(number, &whole)) {
    if (whole > static_cast<uint64_t>(INT64_MAX) / unit_bytes) {
      return TooLarge(text);
    }
    return whole * unit_bytes;
  }
  double fraction = 0;
  if (!absl::SimpleAtod(number, &fraction)) {
    return Malformed(text);
  }
  const double size_bytes = fraction * static_cast<double>(unit_bytes);
  constexpr double kEnd = 0x1p63;
  if (!(size_bytes < kEnd)) {
    return TooLarge(text);
  }
  if (std::floor(size_bytes) != size_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a size must be a whole number of bytes, got ", QuotedText(text)));
  }
  return static_cast<uint64_t>(size_bytes);
}

std::string FormatByteSize(uint64_t size_bytes) {
  for (const auto& [name, unit_bytes] : kBinaryUnits) {
    if (size_bytes >= unit_bytes) {
      const double value =
          static_cast<double>(size_bytes) / static_cast<double>(unit_bytes);
      const int decimals = size_bytes % unit_bytes == 0 || value >= 100 ? 0
                           : value >= 10                                ? 1
                                                                        : 2;
      return absl::StrFormat("%.*f %s", decimals, value, name);
    }
  }
  return absl::StrCat(size_bytes, " B");
}

std::string FormatByteSizeExact(uint64_t size_bytes) {
  for (const auto& [name, unit_bytes] : kBinaryUnits) {
    if (size_bytes >= unit_bytes && size_bytes % unit_bytes == 0) {
      return absl::StrCat(size_bytes / unit_bytes, name);
    }
  }
  return absl::StrCat(size_bytes, "B");
}

std::string FormatCount(uint64_t count) {
  std::string digits = absl::StrCat(count);
  for (size_t from_end = 3; from_end < digits.size(); from_end += 4) {
    digits.insert(digits.size() - from_end, 1, ',');
  }
  return digits;
}

std::string FormatCounted(uint64_t count, absl::string_view one,
                          absl::string_view many) {
  return absl::StrCat(FormatCount(count), " ", count == 1 ? one : many);
}

}  // namespace quire
