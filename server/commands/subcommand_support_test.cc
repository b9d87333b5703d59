// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/commands/subcommand_support.h"

#include <string>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

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

TEST(SubcommandSupportTest, IgnoresRemovedOptionsAndNamesThem) {
  for (const auto& [subcommand, option, remedy] :
       {std::tuple("serve", "--engine=any", "[experiment]"),
        std::tuple("serve", "--range-decode=whole", "the server chooses"),
        std::tuple("build", "--no-symbol-table", "takes 2 KB")}) {
    CLI::App app("", subcommand);
    std::vector<std::string> warnings;
    AddRemovedOptions(
        app, [&](const std::string& warning) { warnings.push_back(warning); });
    EXPECT_THAT(app.help(), Not(HasSubstr("--engine")));
    app.parse(std::vector<std::string>{});
    EXPECT_THAT(warnings, IsEmpty());
    app.parse(std::vector<std::string>{option});
    EXPECT_THAT(warnings, ElementsAre(AllOf(HasSubstr(" is ignored, and will"),
                                            HasSubstr(remedy))));
  }
  CLI::App other("", "verify");
  AddRemovedOptions(other, [](const std::string&) {});
  EXPECT_THROW(other.parse(std::vector<std::string>{"--engine=any"}),
               CLI::ExtrasError);
}

}  // namespace
}  // namespace quire
