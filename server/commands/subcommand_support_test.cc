// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/commands/subcommand_support.h"

#include <algorithm>
#include <chrono>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/base/byte_size.h"
#include "server/commands/progress_meter.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(SubcommandSupportTest, BracketedNamesStayWhole) {
  const char* const arguments[] = {"quired", "build", "[a,b]", "[", "[]", "x]"};
  EXPECT_THAT(ArgumentsForParse(6, arguments),
              ElementsAre("x]", "./[]", "[", "./[a,b]", "build"));
}

TEST(SubcommandSupportTest, FormatsForPeople) {
  EXPECT_EQ(FormatPercent(0, 0), "0%");
  EXPECT_EQ(FormatPercent(1, 8), "12.50%");
  EXPECT_EQ(FormatDuration(0), "0:00");
  EXPECT_EQ(FormatDuration(59.2), "1:00");
  EXPECT_EQ(FormatDuration(3723), "1:02:03");
}

TEST(ProgressMeterTest, ShowsWhatIsKnown) {
  EXPECT_EQ(FormatProgressLine({.phase = "indexing"}, 3), "indexing");
  EXPECT_EQ(FormatProgressLine({.phase = "counting", .done = 3 * kMiB}, 0.1),
            "counting  3 MiB");
  EXPECT_EQ(FormatProgressLine({.phase = "encoding",
                                .done = 25000000,
                                .total = 100000000,
                                .stored_bytes = 5000000},
                               2),
            "encoding  23.8 MiB of 95.4 MiB  25%  to 20.00%  12.5 MB/s  "
            "0:06 left");
  EXPECT_EQ(
      FormatProgressLine(
          {.phase = "verifying", .done = 500, .total = 1000, .unit = "blocks"},
          10),
      "verifying  500 of 1,000 blocks  50%  0:10 left");
}

TEST(ProgressMeterTest, WritesTenTimesASecondAndOnNewPhases) {
  std::chrono::steady_clock::time_point now;
  std::ostringstream out;
  {
    ProgressMeter meter(out, [&now] { return now; });
    for (int i = 0; i < 1000; ++i) {
      now += std::chrono::milliseconds(1);
      meter.Update({.phase = "one", .done = 1});
    }
    meter.Update({.phase = "two", .done = 1});
  }
  const std::string text = out.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\r'), 10 + 1 + 1);
  EXPECT_THAT(text, HasSubstr("\rtwo  1 B"));
}

}  // namespace
}  // namespace quire
