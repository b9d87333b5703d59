// SPDX-License-Identifier: Apache-2.0
#include "loadtest/report/load_timeline.h"

#include "gtest/gtest.h"

namespace quire {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

TEST(LoadTimelineTest, CountsEachAnswerInItsPart) {
  LoadTimeline timeline;
  EXPECT_TRUE(timeline.parts().empty());
  timeline.Add(0, 10, 100);
  timeline.Add(kSecond / 10 - 1, 30, 1);
  timeline.Add(3 * kSecond / 10, 50, 7);
  ASSERT_EQ(timeline.parts().size(), 4u);
  EXPECT_EQ(timeline.parts()[0].request_count, 2u);
  EXPECT_EQ(timeline.parts()[0].text_bytes, 101u);
  EXPECT_EQ(timeline.parts()[0].latency.max_us(), 30u);
  EXPECT_EQ(timeline.parts()[1].request_count, 0u);
  EXPECT_EQ(timeline.parts()[3].text_bytes, 7u);
  EXPECT_DOUBLE_EQ(timeline.part_seconds(), 0.1);
}

TEST(LoadTimelineTest, WidensItsPartsAndLosesNothing) {
  LoadTimeline timeline;
  for (uint64_t i = 0; i < 10'000; ++i) {
    timeline.Add(i * kSecond / 10, i, 2);
    ASSERT_LE(timeline.parts().size(), LoadTimeline::kPartsMax);
  }
  EXPECT_DOUBLE_EQ(timeline.part_seconds(), 10);
  ASSERT_EQ(timeline.parts().size(), 100u);
  uint64_t request_count = 0;
  for (const LoadTimeline::Part& part : timeline.parts()) {
    EXPECT_EQ(part.request_count, 100u);
    EXPECT_EQ(part.text_bytes, 200u);
    request_count += part.latency.count();
  }
  EXPECT_EQ(request_count, 10'000u);
  EXPECT_EQ(timeline.parts()[7].latency.max_us(), 799u);
  // Any jump is accepted.
  timeline.Add(uint64_t{1} << 62, 1, 1);
  EXPECT_LE(timeline.parts().size(), LoadTimeline::kPartsMax);
}

TEST(LoadTimelineTest, ExtendsToTheEndOfARun) {
  LoadTimeline timeline;
  timeline.ExtendTo(0);
  EXPECT_TRUE(timeline.parts().empty());
  timeline.ExtendTo(kSecond);
  EXPECT_EQ(timeline.parts().size(), 10u);
  timeline.ExtendTo(kSecond + 1);
  EXPECT_EQ(timeline.parts().size(), 11u);
}

}  // namespace
}  // namespace quire
