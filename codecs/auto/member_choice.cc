// SPDX-License-Identifier: Apache-2.0
#include "codecs/auto/member_choice.h"

#include <array>

namespace quire {
namespace {

using Members = std::array<AutoMember, kAutoMemberCount>;

// In 10^6 bytes per second.
constexpr AutoSpeed Megabytes(uint64_t encode, uint64_t decode) {
  return {.encode = encode * 1'000'000, .decode = decode * 1'000'000};
}

constexpr AutoMember kCopy = {{.id = CodecId::kCopy},
                              Megabytes(10'000, 10'000)};

// Speeds are those of blocks of 64 KiB of a web crawl, rounded; numeric's those
// of floating-point numbers.
constexpr Members kFast = {
    {kCopy,
     {{.id = CodecId::kLz4, .level = 1}, Megabytes(600, 3000)},
     {{.id = CodecId::kXz, .level = 0}, Megabytes(15, 100)},
     {{.id = CodecId::kNumeric, .level = 3}, Megabytes(80, 1000)},
     {{.id = CodecId::kRlz, .level = 1}, Megabytes(120, 1200)}}};
constexpr Members kMiddle = {
    {kCopy,
     {{.id = CodecId::kLz4, .level = 1}, Megabytes(600, 3000)},
     {{.id = CodecId::kXz, .level = 6}, Megabytes(4, 100)},
     {{.id = CodecId::kNumeric, .level = 9}, Megabytes(30, 1000)},
     {{.id = CodecId::kRlz, .level = 2}, Megabytes(60, 1200)}}};
constexpr Members kSmall = {
    {kCopy,
     {{.id = CodecId::kLz4, .level = 1}, Megabytes(600, 3000)},
     {{.id = CodecId::kXz, .level = 9}, Megabytes(4, 100)},
     {{.id = CodecId::kNumeric, .level = 19}, Megabytes(3, 1000)},
     {{.id = CodecId::kRlz, .level = 3}, Megabytes(6, 1200)}}};

// Value of a second of work, in bytes.
struct Price {
  uint64_t decoding = 0;
  uint64_t encoding = 0;
};

constexpr Price PriceOf(AutoObjective objective) {
  switch (objective) {
    case AutoObjective::kSpeed:
      // About the throughput of a disk.
      return {.decoding = 500'000'000, .encoding = 2'000'000};
    case AutoObjective::kBalanced:
      return {.decoding = 10'000'000, .encoding = 0};
    case AutoObjective::kArchive:
      break;
  }
  return {.decoding = 0, .encoding = 0};
}

}  // namespace

std::span<const AutoMember, kAutoMemberCount> AutoMembers(
    AutoObjective objective) {
  switch (objective) {
    case AutoObjective::kSpeed:
      return kFast;
    case AutoObjective::kBalanced:
      return kMiddle;
    case AutoObjective::kArchive:
      break;
  }
  return kSmall;
}

uint64_t TimeCost(const AutoSpeed& speed, AutoObjective objective,
                  size_t raw_size) {
  const Price price = PriceOf(objective);
  return raw_size * price.decoding / speed.decode +
         raw_size * price.encoding / speed.encode;
}

}  // namespace quire
