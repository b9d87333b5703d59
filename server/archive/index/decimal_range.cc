// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/index/decimal_range.h"

#include <algorithm>
#include <cstddef>

namespace quire {
namespace {

constexpr int kDigitCountMax = 18;

// Returns how many numbers of `digit_count` digits, from zero on and with
// leading zeros, are below `key`. `power` is the number of them.
uint64_t CountPaddedBelow(absl::string_view key, int digit_count,
                          uint64_t power) {
  uint64_t below = 0;
  for (int i = 0; i < digit_count; ++i) {
    const auto index = static_cast<size_t>(i);
    if (index == key.size()) {
      return below;
    }
    const auto byte = static_cast<uint8_t>(key[index]);
    if (byte < '0') {
      return below;
    }
    if (byte > '9') {
      return below + power;
    }
    power /= 10;
    below += (byte - uint64_t{'0'}) * power;
  }
  return below + (key.size() > static_cast<size_t>(digit_count) ? 1 : 0);
}

}  // namespace

std::optional<uint64_t> ParseDecimal(absl::string_view digits) {
  if (digits.empty() || digits.size() > kDigitCountMax ||
      (digits[0] == '0' && digits.size() > 1)) {
    return std::nullopt;
  }
  uint64_t number = 0;
  for (const char digit : digits) {
    if (digit < '0' || digit > '9') {
      return std::nullopt;
    }
    number = number * 10 + static_cast<uint64_t>(digit - '0');
  }
  return number;
}

uint64_t DecimalRange::CountBelow(absl::string_view key) const {
  uint64_t below = 0;
  // Numbers of as many digits are from `lowest` to below `power`.
  uint64_t lowest = 0;
  uint64_t power = 10;
  for (int digit_count = 1; digit_count <= kDigitCountMax; ++digit_count) {
    const uint64_t begin = std::max(first, lowest);
    const uint64_t end = std::min(first + count, power);
    if (begin < end) {
      const uint64_t padded = CountPaddedBelow(key, digit_count, power);
      below += std::clamp(padded, begin, end) - begin;
    }
    lowest = power;
    power *= 10;
  }
  return below;
}

uint64_t DecimalRange::CountWithPrefix(uint64_t prefix) const {
  const uint64_t end = first + count;
  uint64_t with_prefix = 0;
  uint64_t begin_of_prefix = prefix;
  uint64_t size = 1;
  while (begin_of_prefix < end) {
    const uint64_t from = std::max(first, begin_of_prefix);
    const uint64_t to = std::min(end, begin_of_prefix + size);
    with_prefix += from < to ? to - from : 0;
    // No number but zero begins with 0.
    if (prefix == 0) {
      break;
    }
    begin_of_prefix *= 10;
    size *= 10;
  }
  return with_prefix;
}

uint64_t DecimalRange::NumberAt(uint64_t index) const {
  uint64_t number = 0;
  while (true) {
    uint64_t with_prefix = CountWithPrefix(number);
    while (index >= with_prefix) {
      index -= with_prefix;
      with_prefix = CountWithPrefix(++number);
    }
    if (Contains(number)) {
      if (index == 0) {
        return number;
      }
      --index;
    }
    number *= 10;
  }
}

}  // namespace quire
