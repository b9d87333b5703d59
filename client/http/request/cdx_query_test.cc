// SPDX-License-Identifier: Apache-2.0
#include "client/http/request/cdx_query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "client/http/request/request_target.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

absl::StatusOr<CdxQuery> Parse(const std::string& query) {
  absl::StatusOr<RequestTarget> target =
      ParseRequestTarget("/v1/web/cdx?" + query);
  if (!target.ok()) {
    return target.status();
  }
  return std::move(target->cdx);
}

const CdxCapture kCapture = {.key = "com,example)/a",
                             .time_ms = 1'700'000'000'123,
                             .url = "http://example.com/a",
                             .mime = "text/html",
                             .status = "200",
                             .digest = "sha1:ABC",
                             .length = 12,
                             .offset = 345,
                             .file_name = "web@1-2/space"};

TEST(CdxQuery, ReadsTheParametersOfReplayTools) {
  QUIRE_ASSERT_OK_AND_ASSIGN(
      CdxQuery query,
      Parse("url=http%3A%2F%2Fexample.com%2F&closest=20231114&sort=closest&"
            "limit=10"));
  EXPECT_EQ(query.url, "http://example.com/");
  EXPECT_EQ(query.match, SurtMatch::kExact);
  EXPECT_EQ(query.sort, CdxSort::kClosest);
  EXPECT_EQ(query.closest_ms, 1'699'920'000'000);
  EXPECT_EQ(query.limit, 10);
  // As pywb sends it.
  QUIRE_ASSERT_OK_AND_ASSIGN(query, Parse("url=a.com&closest=&sort=closest"));
  EXPECT_EQ(query.sort, CdxSort::kKey);
  QUIRE_ASSERT_OK_AND_ASSIGN(
      query, Parse("urlkey=com,example)/&from=2023&to=20231114&matchType=host&"
                   "output=json&fl=urlkey,original"));
  EXPECT_EQ(query.key, "com,example)/");
  EXPECT_EQ(query.match, SurtMatch::kHost);
  EXPECT_EQ(query.from_ms, 1'672'531'200'000);
  EXPECT_EQ(query.until_ms, 1'700'006'399'999);
  EXPECT_EQ(query.output, CdxOutput::kJson);
  EXPECT_THAT(query.fields, SizeIs(2));
  QUIRE_ASSERT_OK_AND_ASSIGN(query, Parse("url=example.com/dir/*"));
  EXPECT_EQ(query.url, "example.com/dir/");
  EXPECT_EQ(query.match, SurtMatch::kPrefix);
  QUIRE_ASSERT_OK_AND_ASSIGN(query, Parse("url=*.example.com"));
  EXPECT_EQ(query.url, "example.com");
  EXPECT_EQ(query.match, SurtMatch::kDomain);
}

TEST(CdxQuery, RefusesOtherParameters) {
  for (const std::string& query : std::vector<std::string>{
           "", "url=", "url=a&urlkey=b", "url=a&matchType=range",
           "url=a&limit=0", "url=a&limit=x", "url=a&from=20239",
           "url=a&output=xml", "url=a&sort=up", "url=a&fl=size",
           "url=a&filter=status", "url=a&filter=~url:(", "url=a&page=2",
           "url=a&url=b", "url=a*&closest=2024",
           "url=a&sort=reverse&closest=2024", "url=a&filter=size:1"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Parse(query).status())) << query;
  }
  EXPECT_THAT(Parse("url=a&from=x").status().message(), HasSubstr("from must"));
}

TEST(CdxQuery, IsOfSeveralArchives) {
  QUIRE_ASSERT_OK_AND_ASSIGN(RequestTarget target,
                             ParseRequestTarget("/v1/a,b@12-3/cdx?url=x"));
  ASSERT_THAT(target.archives, SizeIs(2));
  EXPECT_EQ(target.archives[0].name, "a");
  EXPECT_EQ(target.archives[1].name, "b");
  EXPECT_EQ(target.archives[1].uuid, "12-3");
  EXPECT_EQ(target.uuid, "");
  EXPECT_EQ(target.resource, Resource::kCaptures);
  EXPECT_FALSE(ParseRequestTarget("/v1/a,/cdx?url=x").ok());
  EXPECT_FALSE(ParseRequestTarget("/v1/a,b/list").ok());
}

TEST(CdxFilter, MatchesAsPywb) {
  const auto matches = [](const std::string& text) {
    const absl::StatusOr<CdxFilter> filter = CdxFilter::Parse(text);
    QUIRE_EXPECT_OK(filter.status());
    return filter.ok() && filter->Matches(kCapture);
  };
  EXPECT_TRUE(matches("=status:200"));
  EXPECT_TRUE(matches("=statuscode:200"));
  EXPECT_FALSE(matches("!=status:200"));
  EXPECT_FALSE(matches("=status:20"));
  EXPECT_TRUE(matches("mime:html"));
  EXPECT_FALSE(matches("!mime:html"));
  EXPECT_TRUE(matches("~mime:.*/html$"));
  EXPECT_FALSE(matches("~mime:html"));
  EXPECT_TRUE(matches("!~mime:image/"));
  EXPECT_TRUE(matches("~timestamp:2023"));
  EXPECT_TRUE(matches("=redirecturl:"));
}

TEST(CdxLine, HasTheFormsOfReplayTools) {
  CdxQuery query;
  EXPECT_EQ(CdxLine(kCapture, query),
            "com,example)/a 20231114221320 {\"url\": \"http://example.com/a\", "
            "\"mime\": \"text/html\", \"status\": \"200\", \"digest\": "
            "\"sha1:ABC\", \"length\": \"12\", \"offset\": \"345\", "
            "\"filename\": \"web@1-2/space\"}\n");
  query.output = CdxOutput::kText;
  EXPECT_EQ(CdxLine(kCapture, query),
            "com,example)/a 20231114221320 http://example.com/a text/html 200 "
            "sha1:ABC - - 12 345 web@1-2/space\n");
  query.fields = {CdxField::kOffset, CdxField::kTime};
  EXPECT_EQ(CdxLine(kCapture, query), "345 20231114221320\n");
  query.output = CdxOutput::kJson;
  EXPECT_EQ(CdxLine(kCapture, query),
            "{\"timestamp\": \"20231114221320\", \"offset\": \"345\"}\n");
  CdxCapture bare = {.key = "com,example)/b",
                     .time_ms = -1,
                     .url = "http://example.com/b c\n",
                     .file_name = "f"};
  EXPECT_EQ(CdxLine(bare, {}),
            "com,example)/b 19691231235959 {\"url\": \"http://example.com/b "
            "c\\n\", \"length\": \"0\", \"offset\": \"0\", \"filename\": "
            "\"f\"}\n");
  query.output = CdxOutput::kText;
  query.fields = {CdxField::kUrl, CdxField::kStatus};
  EXPECT_EQ(CdxLine(bare, query), "http://example.com/b%20c%0A -\n");
}

}  // namespace
}  // namespace quire
