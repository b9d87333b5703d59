// SPDX-License-Identifier: Apache-2.0
#include "client/cli/progress_line.h"

#include "gtest/gtest.h"

namespace quire {
namespace {

TEST(FormatProgressTest, TellsHowFarABatchOfKnownLengthIs) {
  ProgressFigures figures{.elapsed = absl::Seconds(10),
                          .size_bytes = 204'800'000,
                          .item_count = 12'500,
                          .item_count_total = 100'000};
  EXPECT_EQ(FormatProgress(figures),
            "[##                  ] 12,500 / 100,000 items (12 %), 1,250/s, "
            "195 MiB, 20.5 MB/s, 1m10s left");
  figures.failed_count = 3;
  EXPECT_EQ(FormatProgress(figures),
            "[##                  ] 12,500 / 100,000 items (12 %), 1,250/s, "
            "195 MiB, 20.5 MB/s, 1m10s left, 3 failed");
}

TEST(FormatProgressTest, TellsWhatIsDoneOfAPipe) {
  EXPECT_EQ(FormatProgress({.elapsed = absl::Milliseconds(500),
                            .size_bytes = 1'000'000,
                            .item_count = 1'000}),
            "1,000 done, 2,000/s, 977 KiB, 2.0 MB/s");
}

TEST(FormatProgressTest, TellsHowFarARangeIs) {
  EXPECT_EQ(FormatProgress({.elapsed = absl::Seconds(2),
                            .size_bytes = 64 << 20,
                            .size_bytes_total = 256 << 20}),
            "[#####               ] 64 MiB / 256 MiB (25 %), 33.6 MB/s, "
            "6s left");
  EXPECT_EQ(FormatProgress({.elapsed = absl::Seconds(2), .size_bytes = 2'000}),
            "1.95 KiB, 0.0 MB/s");
}

TEST(FormatProgressTest, KeepsToItsBoundsAtEitherEnd) {
  EXPECT_EQ(
      FormatProgress({.elapsed = absl::ZeroDuration(), .item_count_total = 7}),
      "[                    ] 0 / 7 items (0 %), 0 B, 0.0 MB/s, 96h "
      "left");
  EXPECT_EQ(
      FormatProgress({.elapsed = absl::Seconds(1), .item_count_total = 0}),
      "[                    ] 0 / 0 items (100 %), 0 B, 0.0 MB/s, 0 left");
  EXPECT_EQ(FormatProgress({.elapsed = absl::Seconds(1),
                            .size_bytes = 5,
                            .item_count = 9,
                            .item_count_total = 7}),
            "[####################] 7 / 7 items (100 %), 9/s, 5 B, 0.0 MB/s, "
            "0 left");
}

TEST(ProgressModeTest, HasThreeNames) {
  EXPECT_EQ(ParseProgressMode("auto"), ProgressMode::kAuto);
  EXPECT_EQ(ParseProgressMode("always"), ProgressMode::kAlways);
  EXPECT_EQ(ParseProgressMode("never"), ProgressMode::kNever);
}

}  // namespace
}  // namespace quire
