// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/commands/subcommand_support.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace quire {
namespace {

using ::testing::ElementsAre;

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

}  // namespace
}  // namespace quire
