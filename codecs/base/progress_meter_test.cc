// SPDX-License-Identifier: Apache-2.0
#include "codecs/base/progress_meter.h"

#include <algorithm>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace quire {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(FormatProgressTest, ShowsItemsOfAKnownNumber) {
  Progress progress{.size_bytes = 204'800'000,
                    .item_count = 12'500,
                    .item_count_total = 100'000};
  EXPECT_EQ(FormatProgress(progress, absl::Seconds(10)),
            "[##                  ] 12,500 / 100,000 items (12 %), 1,250/s, "
            "195 MiB, 20.5 MB/s, 1m10s left");
  progress.failed_count = 3;
  EXPECT_THAT(FormatProgress(progress, absl::Seconds(10)),
              EndsWith(", 1m10s left, 3 failed"));
  EXPECT_EQ(FormatProgress({.phase = "verifying",
                            .item_count = 500,
                            .item_count_total = 1000,
                            .item_name = "blocks"},
                           absl::Seconds(10)),
            "verifying, [##########          ] 500 / 1,000 blocks (50 %), "
            "50/s, 10s left");
}

TEST(FormatProgressTest, ShowsItemsOfAnUnknownNumber) {
  EXPECT_EQ(FormatProgress({.size_bytes = 1'000'000, .item_count = 1'000},
                           absl::Milliseconds(500)),
            "1,000 done, 2,000/s, 977 KiB, 2.0 MB/s");
}

TEST(FormatProgressTest, ShowsBytes) {
  EXPECT_EQ(
      FormatProgress({.size_bytes = 64 << 20, .size_bytes_total = 256 << 20},
                     absl::Seconds(2)),
      "[#####               ] 64 MiB / 256 MiB (25 %), 33.6 MB/s, 6s left");
  EXPECT_EQ(FormatProgress({.phase = "encoding",
                            .size_bytes = 25'000'000,
                            .size_bytes_total = 100'000'000,
                            .stored_size_bytes = 5'000'000},
                           absl::Seconds(2)),
            "encoding, [#####               ] 23.8 MiB / 95.4 MiB (25 %), "
            "stored in 20.00 %, 12.5 MB/s, 6s left");
  EXPECT_EQ(FormatProgress({.size_bytes = 2'000}, absl::Seconds(2)),
            "1.95 KiB, 0.0 MB/s");
}

TEST(FormatProgressTest, HasNoRatesAtFirst) {
  EXPECT_EQ(FormatProgress({.phase = "indexing"}, absl::Seconds(3)),
            "indexing");
  EXPECT_EQ(FormatProgress({.phase = "counting", .size_bytes = 3 << 20},
                           absl::Milliseconds(100)),
            "counting, 3 MiB");
}

TEST(FormatProgressTest, StaysWithinItsBounds) {
  EXPECT_EQ(FormatProgress({.item_count_total = 7}, absl::ZeroDuration()),
            "[                    ] 0 / 7 items (0 %)");
  EXPECT_EQ(FormatProgress({.item_count_total = 7}, absl::Seconds(1)),
            "[                    ] 0 / 7 items (0 %), 96h left");
  EXPECT_EQ(FormatProgress({.item_count_total = 0}, absl::Seconds(1)),
            "[                    ] 0 / 0 items (100 %), 0 left");
  EXPECT_EQ(
      FormatProgress({.size_bytes = 5, .item_count = 9, .item_count_total = 7},
                     absl::Seconds(1)),
      "[####################] 7 / 7 items (100 %), 9/s, 5 B, 0.0 MB/s, "
      "0 left");
}

TEST(ProgressMeterTest, DrawsTenTimesPerSecondAndOnNewPhases) {
  absl::Time now;
  std::ostringstream out;
  {
    ProgressMeter meter(out, [&now] { return now; }, {});
    for (int i = 0; i < 1000; ++i) {
      now += absl::Milliseconds(1);
      meter.Update({.phase = "one", .size_bytes = 1});
    }
    meter.Update({.phase = "two", .size_bytes = 1});
  }
  const std::string text = out.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\r'), 10 + 1 + 1);
  EXPECT_THAT(text, HasSubstr("\rtwo, 1 B\x1B[K"));
  EXPECT_THAT(text, EndsWith("\r\x1B[K"));
}

TEST(ProgressMeterTest, WritesLinesToALog) {
  absl::Time now;
  std::ostringstream out;
  {
    ProgressMeter meter(out, [&now] { return now; },
                        {.is_terminal = false, .prefix = "quire: "});
    meter.SetItemTotal(2);
    now += absl::Seconds(4);
    meter.Add(10, 1);
    EXPECT_EQ(out.str(), "");
    now += absl::Seconds(1);
    meter.AddFailed();
    meter.Clear();
  }
  const std::string line =
      "quire: [####################] 2 / 2 items (100 %), 0/s, 10 B, 0.0 MB/s, "
      "0 left, 1 failed\n";
  EXPECT_EQ(out.str(), line + line);
}

TEST(ProgressMeterTest, WritesNothingIfDisabled) {
  absl::Time now;
  std::ostringstream out;
  {
    ProgressMeter meter(out, [&now] { return now; }, {.enabled = false});
    now += absl::Seconds(10);
    meter.Update({.phase = "one", .size_bytes = 1});
    meter.Add(10, 1);
  }
  EXPECT_EQ(out.str(), "");
}

}  // namespace
}  // namespace quire
