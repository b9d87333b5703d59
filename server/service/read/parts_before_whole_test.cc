// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cstdint>
#include <limits>

#include "gtest/gtest.h"

#include "server/service/read/answer_read.h"

namespace quire {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

constexpr uint32_t kNever = std::numeric_limits<uint32_t>::max();
constexpr uint64_t kPart = 32 << 10;

TEST(DecodeChooserTest, WaitsUntilBothTimesAreKnown) {
  EXPECT_EQ(PartsBeforeWhole(8 * kPart, {}), kNever);
  EXPECT_EQ(PartsBeforeWhole(8 * kPart, {.read_time = microseconds(5000)}),
            kNever);
  EXPECT_EQ(
      PartsBeforeWhole(8 * kPart, {.decode_time_per_mib = microseconds(2000)}),
      kNever);
}

TEST(DecodeChooserTest, ComparesReadsWithDecodingTheBlock) {
  // 256 KiB take 640 microseconds.
  const auto parts = [](int64_t read_us) {
    return PartsBeforeWhole(8 * kPart,
                            {.read_time = microseconds(read_us),
                             .decode_time_per_mib = microseconds(2560)});
  };
  EXPECT_EQ(parts(10'000), 1u);
  EXPECT_EQ(parts(641), 1u);
  EXPECT_EQ(parts(639), 2u);
  EXPECT_EQ(parts(200), 4u);
  // A read from the page cache: more partitions than the block has.
  EXPECT_GT(parts(40), 8u);
  EXPECT_EQ(PartsBeforeWhole(
                uint64_t{1} << 20,
                {.read_time = nanoseconds(1),
                 .decode_time_per_mib = std::chrono::nanoseconds::max()}),
            kNever);
}

// Cost for a client that reads the first `wanted` parts of a block one by one.
double CostOf(double wanted, double parts, double read, double decode,
              double parts_before_whole) {
  if (wanted <= parts_before_whole) {
    return wanted * (read + decode);
  }
  return parts_before_whole * (read + decode) + read + parts * decode;
}

TEST(DecodeChooserTest, CostsAtMostThreeTimesWhatKnowingTheFutureWould) {
  bool parts_alone_cost_more = false;
  for (const uint32_t parts : {2u, 8u, 64u, 256u}) {
    for (const uint32_t read_us : {1u, 40u, 100u, 640u, 5000u}) {
      for (const uint32_t decode_us : {5u, 80u, 500u}) {
        const uint32_t before = PartsBeforeWhole(
            parts * kPart,
            {.read_time = microseconds(read_us),
             .decode_time_per_mib =
                 microseconds(decode_us * int64_t{1 << 20} / int64_t{kPart})});
        for (uint32_t wanted = 1; wanted <= parts; ++wanted) {
          const double best = std::min<double>(wanted * (read_us + decode_us),
                                               read_us + parts * decode_us);
          EXPECT_LE(CostOf(wanted, parts, read_us, decode_us, before), 3 * best)
              << parts << " " << wanted << " " << read_us << " " << decode_us;
          parts_alone_cost_more |=
              CostOf(wanted, parts, read_us, decode_us, kNever) > 3 * best;
        }
      }
    }
  }
  EXPECT_TRUE(parts_alone_cost_more);
}

}  // namespace
}  // namespace quire
