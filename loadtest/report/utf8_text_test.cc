// SPDX-License-Identifier: Apache-2.0
#include "loadtest/report/utf8_text.h"

#include "gtest/gtest.h"

namespace quire {
namespace {

constexpr char kReplaced[] = "\xEF\xBF\xBD";

TEST(Utf8TextTest, LeavesCharactersOfAllSizes) {
  const std::string text =
      "a\xC2\x80\xDF\xBF\xE0\xA0\x80\xED\x9F\xBF\xEF\xBF\xBF"
      "\xF0\x90\x80\x80\xF4\x8F\xBF\xBF";
  EXPECT_EQ(ToUtf8(text), text);
  EXPECT_EQ(ToUtf8(""), "");
  EXPECT_EQ(ToUtf8(std::string("\0x", 2)), std::string("\0x", 2));
}

TEST(Utf8TextTest, ReplacesEachByteOfWhatIsNoCharacter) {
  EXPECT_EQ(ToUtf8("\xFFz"), std::string(kReplaced) + "z");
  // Cut short, overlong, a surrogate, past the last one.
  for (const char* bytes : {"\xE2\x82", "\xC0\x80", "\xC1\xBF"}) {
    EXPECT_EQ(ToUtf8(bytes), std::string(kReplaced) + kReplaced);
  }
  for (const char* bytes : {"\xE0\x9F\xBF", "\xED\xA0\x80"}) {
    EXPECT_EQ(ToUtf8(bytes), std::string(kReplaced) + kReplaced + kReplaced);
  }
  for (const char* bytes :
       {"\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80"}) {
    EXPECT_EQ(ToUtf8(bytes),
              std::string(kReplaced) + kReplaced + kReplaced + kReplaced);
  }
  EXPECT_EQ(ToUtf8("\xE2(\xA1"), std::string(kReplaced) + "(" + kReplaced);
}

}  // namespace
}  // namespace quire
