// SPDX-License-Identifier: Apache-2.0
#include "loadtest/report/load_report_html.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "loadtest/report/load_report_json.h"

namespace quire {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

size_t CountOf(absl::string_view part, absl::string_view text) {
  size_t count = 0;
  for (size_t at = text.find(part); at != absl::string_view::npos;
       at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

TEST(LoadReportHtmlTest, IsOnePageThatNeedsNoNetwork) {
  const std::string html =
      RenderReportHtml(RenderReportJson({}, {}, "localhost:7420"));
  EXPECT_THAT(html, HasSubstr("<!DOCTYPE html>"));
  EXPECT_THAT(html, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_THAT(html, HasSubstr("\"address\": \"localhost:7420\""));
  EXPECT_THAT(html, Not(HasSubstr("src=")));
  EXPECT_THAT(html, Not(HasSubstr("href=")));
  EXPECT_THAT(html, Not(HasSubstr("@REPORT@")));
}

// All text is in the report's JSON, and the script sets it as text.
TEST(LoadReportHtmlTest, NothingFromOutsideEndsTheElementOfTheReport) {
  LoadReport report;
  const std::string evil = "</script><script>alert(1)</script><!--\"'&\xFF";
  LoadOptions options;
  options.archive = evil;
  report.faults = {evil};
  report.errors[evil] = 1;
  report.archive.set_codec(evil);
  const std::string html =
      RenderReportHtml(RenderReportJson(options, report, evil));
  EXPECT_EQ(CountOf("<script", html), CountOf("<script", kLoadPage));
  EXPECT_EQ(CountOf("</script", html), CountOf("</script", kLoadPage));
  EXPECT_EQ(CountOf("\\u003c/script>\\u003cscript>alert", html), 5u);
  EXPECT_THAT(html, Not(HasSubstr("<!--\"")));
  EXPECT_THAT(html, Not(HasSubstr("\xFF")));
  EXPECT_THAT(std::string(kLoadPage), Not(HasSubstr("innerHTML")));
}

}  // namespace
}  // namespace quire
