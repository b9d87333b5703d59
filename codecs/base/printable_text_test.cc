// SPDX-License-Identifier: Apache-2.0
#include "codecs/base/printable_text.h"

#include <limits>
#include <string>

#include "gtest/gtest.h"

#include "codecs/base/check.h"
#include "codecs/base/json_text.h"

#include "nlohmann/json.hpp"

namespace quire {
namespace {

constexpr char kReplaced[] = "\xEF\xBF\xBD";

TEST(Utf8Test, TellsSequencesOfAllSizes) {
  for (const char* good :
       {"", "abc", "\xC2\x80\xDF\xBF", "\xE0\xA0\x80\xED\x9F\xBF\xEF\xBF\xBF",
        "\xF0\x90\x80\x80\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(IsUtf8(good)) << good;
  }
  for (const char* bad :
       {"\x80", "\xC0\xAF", "\xC3", "\xED\xA0\x80", "\xF4\x90\x80\x80",
        "\xE2\x82", "a\xFF", "\xF0\x80\x80\x80", "\xF5\x80\x80\x80"}) {
    EXPECT_FALSE(IsUtf8(bad)) << bad;
  }
}

TEST(PrintableTextTest, LeavesNothingThatATerminalActsOn) {
  EXPECT_EQ(PrintableText("a\x1B[31m\n\xFF\x7F\\ \xC3\xA9"),
            "a\\x1B[31m\\x0A\\xFF\\x7F\\\\ \xC3\xA9");
  for (int c1 = 0x80; c1 <= 0x9F; ++c1) {
    const std::string text = {'\xC2', static_cast<char>(c1)};
    const std::string shown = PrintableText(text);
    EXPECT_EQ(shown.size(), 8) << c1;
    EXPECT_EQ(PrintableMessage(text), shown);
    // Neither the character nor its second byte, which is a C1 control on
    // terminals without UTF-8.
    for (const char c : shown) {
      EXPECT_TRUE(c >= 0x20 && c < 0x7F) << c1;
    }
  }
  EXPECT_EQ(PrintableText("\xC2\xA0"), "\xC2\xA0");
}

TEST(PrintableTextTest, MessagesAreNotEscapedTwice) {
  const std::string inner = PrintableText("a\x1B");
  EXPECT_EQ(PrintableMessage(inner + "\x1B\n"), "a\\x1B\\x1B\\x0A");
}

TEST(PrintableTextTest, QuotesAndShortens) {
  EXPECT_EQ(QuotedText("a\"b\\"), "\"a\\\"b\\\\\"");
  EXPECT_EQ(QuotedText("abcd", 4), "\"abcd\"");
  EXPECT_EQ(QuotedText("abcde", 4), "\"abcd\"...");
  EXPECT_EQ(QuotedText("abc\xC3\xA9z", 4), "\"abc\"...");
  EXPECT_EQ(QuotedText("\x80\x80\x80\x80\x80\x80", 5),
            "\"\\x80\\x80\\x80\\x80\\x80\"...");
}

TEST(JsonTextTest, StringsAreUtf8WithoutControls) {
  EXPECT_EQ(JsonString("a\"b\\c\nd\xC3\xA9"), "\"a\\\"b\\\\c\\nd\xC3\xA9\"");
  EXPECT_EQ(JsonString(absl::string_view("\0\x1B\x7F", 3)),
            "\"\\u0000\\u001b\\u007f\"");
  EXPECT_EQ(JsonString("\xC2\x80x\xC2\x9F\xC2\xA0"),
            "\"\\u0080x\\u009f\xC2\xA0\"");
  EXPECT_EQ(JsonString("\xFFx"), std::string("\"") + kReplaced + "x\"");
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const std::string text = {static_cast<char>(first),
                                static_cast<char>(second)};
      const std::string json = JsonString(text);
      ASSERT_TRUE(IsUtf8(json));
      // Terminal controls are gone, and the value is unchanged.
      ASSERT_EQ(PrintableMessage(json), json) << first << " " << second;
      const std::string back = Json::parse(json).get<std::string>();
      if (IsUtf8(text)) {
        ASSERT_EQ(back, text);
      } else {
        ASSERT_NE(back.find(kReplaced), std::string::npos);
      }
    }
  }
}

TEST(JsonTextTest, KeepsOrderAndNumbers) {
  Json json;
  json["z\xC2\x9B"] = uint64_t{18446744073709551615u};
  json["a"] = {0.1, 1e300, std::numeric_limits<double>::infinity(), nullptr};
  EXPECT_EQ(JsonText(json),
            "{\"z\\u009b\":18446744073709551615,\"a\":[0.1,1e+300,null,null]}");
  EXPECT_EQ(JsonText(Json::array({1}), 2), "[\n  1\n]");
}

TEST(CheckTest, SaysWhatWasViolatedAndWhere) {
  const int slots = 3;
  QUIRE_CHECK(slots == 3);
  QUIRE_CHECK(slots == 3, "not evaluated", 1 / (slots - 2));
  EXPECT_DEATH(QUIRE_CHECK(slots < 3),
               "printable_text_test.cc:[0-9]+: check failed: slots < 3\n");
  EXPECT_DEATH(QUIRE_CHECK(slots < 3, slots, " slots in use"),
               "check failed: slots < 3: 3 slots in use\n");
}

}  // namespace
}  // namespace quire
