// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/announced_text.h"

#include <cstdint>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

TEST(AnnouncedTextTest, CountsEachPassFromTheBeginning) {
  AnnouncedText text(10);
  EXPECT_EQ(text.size(), 10u);
  for (int pass = 0; pass < 3; ++pass) {
    EXPECT_EQ(text.position(), 0u);
    QUIRE_EXPECT_OK(text.Add(4));
    EXPECT_EQ(text.position(), 4u);
    QUIRE_EXPECT_OK(text.Add(0));
    QUIRE_EXPECT_OK(text.Add(6));
    EXPECT_EQ(text.position(), 10u);
    QUIRE_EXPECT_OK(text.FinishPass());
  }
}

TEST(AnnouncedTextTest, RefusesMoreThanWasAnnounced) {
  AnnouncedText text(10);
  QUIRE_EXPECT_OK(text.Add(9));
  EXPECT_THAT(text.Add(2), FailsWith(absl::StatusCode::kFailedPrecondition,
                                     HasSubstr("longer than the 10 bytes")));
  // No sum of sizes overflows.
  EXPECT_THAT(text.Add(UINT64_MAX),
              HasCode(absl::StatusCode::kFailedPrecondition));
  // Refused text does not count.
  EXPECT_EQ(text.position(), 9u);
  QUIRE_EXPECT_OK(text.Add(1));
  QUIRE_EXPECT_OK(text.FinishPass());
}

TEST(AnnouncedTextTest, RefusesLessThanWasAnnounced) {
  AnnouncedText text(10);
  QUIRE_EXPECT_OK(text.Add(9));
  EXPECT_THAT(text.FinishPass(),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        HasSubstr("has 9 bytes, not the 10")));
  // A later pass must have the same size.
  AnnouncedText again(10);
  QUIRE_EXPECT_OK(again.Add(10));
  QUIRE_EXPECT_OK(again.FinishPass());
  EXPECT_THAT(again.FinishPass(),
              HasCode(absl::StatusCode::kFailedPrecondition));
}

TEST(AnnouncedTextTest, MayBeEmpty) {
  AnnouncedText text(0);
  QUIRE_EXPECT_OK(text.Add(0));
  QUIRE_EXPECT_OK(text.FinishPass());
  EXPECT_THAT(text.Add(1), HasCode(absl::StatusCode::kFailedPrecondition));
}

}  // namespace
}  // namespace quire
