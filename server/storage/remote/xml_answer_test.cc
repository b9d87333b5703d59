// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/remote/xml_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace quire {
namespace {

TEST(XmlAnswerTest, ReadsAList) {
  const auto list = ParseXmlAnswer(
      "\xEF\xBB\xBF<?xml version=\"1.0\"?>\n<!-- x --><s3:List "
      "xmlns:s3='http://s3/' a = \"1>2\">\n <Upload><Key>a &amp;&lt;&gt; "
      "&quot;&apos; &#228;&#x1F600;</Key><Id/></Upload ><Upload/><More>true"
      "</More></s3:List>\n");
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(list->name, "List");
  EXPECT_EQ(list->text, "");
  ASSERT_EQ(list->children.size(), 3u);
  EXPECT_EQ(list->children[0].TextOf("Key"),
            "a &<> \"' \xC3\xA4\xF0\x9F\x98\x80");
  EXPECT_EQ(list->children[0].TextOf("Id"), "");
  EXPECT_EQ(list->TextOf("More"), "true");
  EXPECT_EQ(list->Find("None"), nullptr);
}

TEST(XmlAnswerTest, EscapesForItself) {
  const std::string text = "a<b>&\"c'";
  const auto read =
      ParseXmlAnswer(absl::StrCat("<x>", EscapeXml(text), "</x>"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->text, text);
}

TEST(XmlAnswerTest, RefusesMalformedText) {
  for (const char* text : {"",
                           "x",
                           "<",
                           "<>",
                           "<:/>",
                           "<a:/>",
                           "<a",
                           "<a>",
                           "<a></b>",
                           "<a></a>x",
                           "<a/><b/>",
                           "<a b></a>",
                           "<a b=c></a>",
                           "<a b=\"></a>",
                           "<a>&x;</a>",
                           "<a>&amp</a>",
                           "<a>&#0;</a>",
                           "<a>&#xD800;</a>",
                           "<a>&#x110000;</a>",
                           "<a>&#-1;</a>",
                           "<a>&#;</a>",
                           "<a>&#x;</a>",
                           "<!DOCTYPE a><a/>",
                           "<a><![CDATA[x]]></a>",
                           "<a><!-- </a>",
                           "<?xml <a/>"}) {
    EXPECT_EQ(ParseXmlAnswer(text).status().code(),
              absl::StatusCode::kInvalidArgument)
        << text;
  }
}

TEST(XmlAnswerTest, BoundsDepthCountAndSize) {
  const auto nested = [](int depth) {
    std::string text;
    for (int i = 0; i < depth; ++i) {
      text.insert(0, "<a>").append("</a>");
    }
    return ParseXmlAnswer(text);
  };
  EXPECT_TRUE(nested(kXmlDepthMax).ok());
  EXPECT_FALSE(nested(kXmlDepthMax + 1).ok());
  const auto wide = [](size_t count) {
    std::string text = "<a>";
    for (size_t i = 1; i < count; ++i) {
      text += "<b/>";
    }
    return ParseXmlAnswer(text + "</a>");
  };
  EXPECT_TRUE(wide(kXmlElementCountMax).ok());
  EXPECT_FALSE(wide(kXmlElementCountMax + 1).ok());
  EXPECT_FALSE(
      ParseXmlAnswer(
          absl::StrCat("<a>", std::string(kXmlSizeBytesMax, 'x'), "</a>"))
          .ok());
}

}  // namespace
}  // namespace quire
