// SPDX-License-Identifier: Apache-2.0
#include "codecs/automatic/member_choice.h"

#include <array>

namespace quire {
namespace {

using Members = std::array<AutoMember, kAutoMemberCount>;

constexpr AutoMember kCopy = {{.id = CodecId::kCopy}, 10'000, 10'000};

// Speeds are those of blocks of 64 KiB of a web crawl, rounded; numeric's those
// of floating-point numbers.
constexpr Members kFast = {{kCopy,
                            {{.id = CodecId::kLz4, .level = 1}, 600, 3000},
                            {{.id = CodecId::kXz, .level = 0}, 15, 100},
                            {{.id = CodecId::kNumeric, .level = 3}, 80, 1000},
                            {{.id = CodecId::kRlz, .level = 1}, 120, 1200}}};
constexpr Members kMiddle = {{kCopy,
                              {{.id = CodecId::kLz4, .level = 1}, 600, 3000},
                              {{.id = CodecId::kXz, .level = 6}, 4, 100},
                              {{.id = CodecId::kNumeric, .level = 9}, 30, 1000},
                              {{.id = CodecId::kRlz, .level = 2}, 60, 1200}}};
constexpr Members kSmall = {{kCopy,
                             {{.id = CodecId::kLz4, .level = 1}, 600, 3000},
                             {{.id = CodecId::kXz, .level = 9}, 4, 100},
                             {{.id = CodecId::kNumeric, .level = 19}, 3, 1000},
                             {{.id = CodecId::kRlz, .level = 3}, 6, 1200}}};

// What a second of work is worth, in 10^6 bytes.
struct Price {
  uint64_t decoding = 0;
  uint64_t encoding = 0;
};

constexpr Price PriceOf(AutoObjective objective) {
  switch (objective) {
    case AutoObjective::kSpeed:
      // About what a disk delivers in the time.
      return {.decoding = 500, .encoding = 2};
    case AutoObjective::kBalanced:
      return {.decoding = 10, .encoding = 0};
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

uint64_t MemberCost(const AutoMember& member, AutoObjective objective,
                    size_t raw_size, size_t stored_size) {
  const Price price = PriceOf(objective);
  return stored_size + raw_size * price.decoding / member.decode_speed +
         raw_size * price.encoding / member.encode_speed;
}

}  // namespace quire
