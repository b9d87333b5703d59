// SPDX-License-Identifier: Apache-2.0
#include "client/http/request/html_text.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace quire {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(HtmlEscape, LeavesNoMarkup) {
  EXPECT_EQ(HtmlEscape("a<b>&\"'"), "a&lt;b&gt;&amp;&quot;&#39;");
  EXPECT_EQ(HtmlEscape("\xc3\xa9\xff\x01\n"), "\xc3\xa9\\xFF\\x01\\x0A");
  EXPECT_EQ(HtmlEscape(""), "");
}

TEST(Links, KeepWhatBrowsersResolve) {
  EXPECT_EQ(DocumentLink("/v1/web", "doc", "a//b\"<", "0f", 7),
            "/v1/web/doc/a//b%22%3C");
  EXPECT_EQ(DocumentLink("/v1/web", "page", "http://a/?b#c", "0f", 7),
            "/v1/web/page/http%3A//a/%3Fb%23c");
  for (const char* id : {"", ".", "..", "a/../b", "./a", "a/.", "a/.."}) {
    EXPECT_EQ(DocumentLink("/v1/web", "doc", id, "0f", 7),
              "/v1/web@0f/ordinal/7")
        << id;
  }
  EXPECT_EQ(DocumentLink("/v1/web", "doc", "a..b/.c", "0f", 7),
            "/v1/web/doc/a..b/.c");
  EXPECT_EQ(BrowseLink("web", "a/b/"), "/browse/web/a/b/");
  EXPECT_EQ(BrowseLink("web", "a/../"), "/browse/web/?prefix=a%2F..%2F");
}

TEST(BrowsePage, EscapesAllOfIt) {
  const std::string hostile = "\"><script>alert(1)</script>";
  const BrowseRow row{.link = hostile,
                      .name = hostile,
                      .size = hostile,
                      .time = hostile,
                      .media_type = hostile,
                      .record_link = hostile};
  const std::string html = RenderBrowsePage(
      {.title = hostile, .path = {row}, .rows = {row}, .next_link = hostile});
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_THAT(html, Not(HasSubstr("\"\"")));
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;"));
  EXPECT_THAT(html, HasSubstr(">next page</a>"));
}

}  // namespace
}  // namespace quire
