// SPDX-License-Identifier: Apache-2.0
#include "codecs/base/help_formatter.h"

#include <memory>
#include <string>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace quire {
namespace {

using ::testing::HasSubstr;
using ::testing::Le;

TEST(HelpFormatterTest, FoldsAtBlanks) {
  EXPECT_EQ(FoldText("", 5, 2), "");
  EXPECT_EQ(FoldText("ab cd", 5, 2), "ab cd");
  EXPECT_EQ(FoldText("ab cd ef", 5, 2), "ab cd\n  ef");
  EXPECT_EQ(FoldText("ab cde f", 5, 0), "ab\ncde f");
  EXPECT_EQ(FoldText("a bcdefg h", 5, 1), "a\n bcdefg\n h");
  EXPECT_EQ(FoldText("a b", 0, 0), "a\nb");
}

TEST(HelpFormatterTest, OptionsOfSubcommandsFitIntoLines) {
  std::string text;
  for (int i = 0; i < 60; ++i) {
    text += "word" + std::to_string(i) + (i == 59 ? "" : " ");
  }
  CLI::App app("prints things", "thing");
  app.formatter(std::make_shared<HelpFormatter>());
  CLI::App& get = *app.add_subcommand("get", text);
  std::string value;
  get.add_option("--value", value, text);
  // The description at its start is that of the program's list.
  const std::string help = app.help() + get.help().substr(text.size());
  for (const absl::string_view line : absl::StrSplit(help, '\n')) {
    EXPECT_THAT(line.size(), Le(kHelpColumns)) << line;
  }
  std::string unfolded;
  for (const absl::string_view word :
       absl::StrSplit(help, absl::ByAnyChar(" \n"), absl::SkipEmpty())) {
    unfolded += std::string(word) + " ";
  }
  EXPECT_THAT(unfolded, HasSubstr(" get " + text));
  EXPECT_THAT(unfolded, HasSubstr("--value TEXT " + text));
}

}  // namespace
}  // namespace quire
