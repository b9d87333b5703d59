// SPDX-License-Identifier: Apache-2.0
#include "codecs/base/number_range.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace quire {
namespace {

TEST(NumberRangeTest, CountsAreInRange) {
  const CLI::Validator check = CountInRange(1, 1024);
  for (const char* good : {"1", "1024"}) {
    EXPECT_EQ(check(good), "");
  }
  for (const char* bad :
       {"0", "1025", "-1", "x", "", "1.5", "18446744073709551617"}) {
    EXPECT_EQ(check(bad), absl::StrCat("must be 1 to 1024, got \"", bad, "\""));
  }
}

TEST(NumberRangeTest, NumbersAreInRange) {
  const CLI::Validator check = NumberInRange(0.5, 10);
  for (const char* good : {"0.5", "1e1", "2"}) {
    EXPECT_EQ(check(good), "");
  }
  for (const char* bad : {"0.49", "10.1", "-1", "x", "", "nan", "inf", "2s"}) {
    EXPECT_EQ(check(bad), absl::StrCat("must be 0.5 to 10, got \"", bad, "\""));
  }
}

}  // namespace
}  // namespace quire
