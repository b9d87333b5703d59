// SPDX-License-Identifier: Apache-2.0
#include "client/http/request/request_target.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

RequestTarget Parsed(absl::string_view raw) {
  absl::StatusOr<RequestTarget> target = ParseRequestTarget(raw);
  EXPECT_TRUE(target.ok()) << raw << ": " << target.status();
  return target.ok() ? *std::move(target) : RequestTarget{};
}

absl::StatusCode CodeOf(absl::string_view raw) {
  return ParseRequestTarget(raw).status().code();
}

TEST(RequestTarget, NamesResources) {
  EXPECT_EQ(Parsed("/v1/").resource, Resource::kArchives);
  EXPECT_EQ(Parsed("/v1/web").resource, Resource::kArchive);
  EXPECT_EQ(Parsed("/v1/web/doc/a").resource, Resource::kDocument);
  EXPECT_EQ(Parsed("/v1/web/page/a").resource, Resource::kPage);
  EXPECT_EQ(Parsed("/v1/web/file/a").resource, Resource::kDeposit);
  EXPECT_EQ(Parsed("/v1/web/file/a%2Fb/c.warc").id, "a/b/c.warc");
  EXPECT_EQ(Parsed("/v1/web/space").resource, Resource::kSpace);
  EXPECT_EQ(Parsed("/v1/web/list").resource, Resource::kList);
  EXPECT_EQ(Parsed("/browse/").resource, Resource::kBrowseArchives);
  EXPECT_EQ(Parsed("/browse/web").resource, Resource::kBrowse);
  EXPECT_EQ(Parsed("/browse/web/a/").id, "a/");
  EXPECT_EQ(Parsed("/v1/web/ordinal/17").ordinal, 17);
  EXPECT_EQ(Parsed("/v1/web/doc/").id, "");
  EXPECT_EQ(Parsed("/files/web.wacz").resource, Resource::kFile);
  EXPECT_EQ(Parsed("/files/a%20b").id, "a b");
}

TEST(RequestTarget, RefusesOtherPaths) {
  for (const char* path : {"",
                           "/",
                           "v1/",
                           "/v1",
                           "/v2/",
                           "/browse",
                           "//v1/",
                           "/v1/web/",
                           "/v1/web/docs/a",
                           "/v1/web/space/",
                           "/v1/web/space/a",
                           "/v1//doc/a",
                           "/v1/../v1/web",
                           "/v1/web/../web/space",
                           "*",
                           "/v1/a%2Fb/doc/a",
                           "/v1/web@/doc/a",
                           "/v1/web@a/b@/doc/a",
                           "/v1/@1/doc/a",
                           "/v1/web@..%2f/doc/a",
                           "/v1/web/ordinal/18446744073709551616"}) {
    EXPECT_EQ(CodeOf(path), absl::StatusCode::kNotFound) << path;
  }
  EXPECT_EQ(CodeOf(absl::StrCat("/v1/", std::string(129, 'a'), "/doc/a")),
            absl::StatusCode::kNotFound);
}

TEST(RequestTarget, NeverNormalises) {
  EXPECT_EQ(Parsed("/v1/web/doc//a//b/../c/./d").id, "/a//b/../c/./d");
  EXPECT_EQ(Parsed("/v1/web/doc/http://a/%2e%2E/b").id, "http://a/../b");
  EXPECT_EQ(Parsed("/v1/web/doc/a%2Fb%00c%ff+d").id,
            std::string("a/b\0c\xff+d", 8));
}

TEST(RequestTarget, RefusesMalformedEscapes) {
  for (const char* id : {"%", "%4", "a%g0", "%0g", "%%30", "%-1"}) {
    EXPECT_EQ(CodeOf(absl::StrCat("/v1/web/doc/", id)),
              absl::StatusCode::kInvalidArgument)
        << id;
    EXPECT_EQ(CodeOf(absl::StrCat("/v1/web/list?prefix=", id)),
              absl::StatusCode::kInvalidArgument)
        << id;
  }
}

TEST(RequestTarget, TakesContentsByUuid) {
  const RequestTarget target = Parsed("/v1/web@0af-1/doc/a@b");
  EXPECT_EQ(target.archive, "web");
  EXPECT_EQ(target.uuid, "0af-1");
  EXPECT_EQ(target.id, "a@b");
  // Python's quote() escapes it.
  EXPECT_EQ(Parsed("/v1/web%400af-1/space").uuid, "0af-1");
}

TEST(RequestTarget, TakesParameters) {
  const RequestTarget captured =
      Parsed("/v1/web/page/a?at=2021-06&type=Response,revisit&type=");
  EXPECT_EQ(captured.at_time_ms, 1625097599999);
  EXPECT_THAT(captured.record_types, ElementsAre("response", "revisit", ""));
  EXPECT_EQ(Parsed("/v1/web/doc/a?occurrence=3").occurrence, 3);
  const RequestTarget list =
      Parsed("/v1/web/list?prefix=a%26b+c&delimiter=%2F&limit=10&token=x%3D&");
  EXPECT_EQ(list.id, "a&b c");
  EXPECT_EQ(list.delimiter, "/");
  EXPECT_EQ(list.limit, 10);
  EXPECT_EQ(list.token, "x=");
}

TEST(RequestTarget, TakesFieldsAndFilters) {
  const RequestTarget list = Parsed(
      "/v1/web/list?fields=lang,score%2Clang&where=lang+%3D+%22de%22+and+"
      "score>0.5");
  EXPECT_THAT(list.fields, ElementsAre("lang", "score"));
  EXPECT_EQ(list.where, "lang = \"de\" and score>0.5");
  EXPECT_EQ(Parsed("/v1/web/list").where, std::nullopt);
  std::string many = "/v1/web/list?fields=f0";
  for (int i = 1; i < 32; ++i) {
    absl::StrAppend(&many, ",f", i);
  }
  EXPECT_EQ(Parsed(many).fields.size(), 32u);
  const std::pair<std::string, const char*> cases[] = {
      {many + ",f32", "fields must have at most 32 names, got 33"},
      {"/v1/web/list?fields=", "fields: "},
      {"/v1/web/list?fields=a,,b", "fields: "},
      {"/v1/web/list?fields=id", "\"id\""},
      {"/v1/web/list?fields=a&fields=b", "fields must be given once"},
      {"/v1/web/list?where=lang+%3D+de", "where: column 8: found "},
      {"/v1/web/list?where=", "where: column 1: "},
      {"/v1/web/doc/a?where=size+>+1", "no parameter \"where\""},
      {"/browse/web/?fields=a", "no parameter \"fields\""}};
  for (const auto& [target, message] : cases) {
    EXPECT_THAT(
        ParseRequestTarget(target).status(),
        FailsWith(absl::StatusCode::kInvalidArgument, HasSubstr(message)))
        << target;
  }
}

TEST(RequestTarget, RefusesParameters) {
  EXPECT_EQ(CodeOf("/v1/web/file/a?at=2021"),
            absl::StatusCode::kInvalidArgument);
  for (const char* target :
       {"/v1/?a", "/v1/web?limit=1", "/v1/web/space?at=2021",
        "/v1/web/doc/a?prefix=b", "/v1/web/ordinal/1?at=2021",
        "/v1/web/doc/a?at=x", "/v1/web/doc/a?at=2021&at=2022",
        "/v1/web/doc/a?occurrence=-1", "/v1/web/doc/a?occurrence=",
        "/v1/web/doc/a?occurrence=18446744073709551616",
        "/v1/web/doc/a?occurrence=1&type=a", "/v1/web/list?limit=0",
        "/v1/web/list?limit=4294967296", "/v1/web/list?delimiter=",
        "/browse/web/a?prefix=b", "/v1/web/ordinal/1x", "/v1/web/ordinal/",
        "/files/a?token=b", "/files/%zz"}) {
    EXPECT_EQ(CodeOf(target), absl::StatusCode::kInvalidArgument) << target;
  }
  EXPECT_THAT(
      std::string(
          ParseRequestTarget("/v1/web/doc/a?occurrence=x").status().message()),
      HasSubstr("occurrence must be a number from 0, got \"x\""));
  // A URL as it is.
  EXPECT_THAT(ParseRequestTarget("/v1/web/doc/http://a/b?c=1").status(),
              FailsWith(absl::StatusCode::kInvalidArgument, HasSubstr("%3F")));
}

TEST(PercentEncode, IsUndone) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) {
    all.push_back(static_cast<char>(byte));
  }
  for (const bool keeps_slashes : {false, true}) {
    const std::string text =
        PercentEncode({all.data(), all.size()}, keeps_slashes);
    EXPECT_EQ(text.find('/') != std::string::npos, keeps_slashes);
    QUIRE_ASSERT_OK_AND_ASSIGN(const std::string decoded,
                               PercentDecode({text.data(), text.size()}));
    EXPECT_EQ(decoded, all);
  }
}

TEST(TakeAuthority, TakesAbsoluteForms) {
  absl::string_view raw = "HTTP://a:80/v1/?b";
  EXPECT_EQ(TakeAuthority(raw), "a:80");
  EXPECT_EQ(raw, "/v1/?b");
  raw = "http://a?b";
  EXPECT_EQ(TakeAuthority(raw), "a");
  EXPECT_EQ(raw, "?b");
  raw = "/http://a/";
  EXPECT_EQ(TakeAuthority(raw), std::nullopt);
  EXPECT_EQ(raw, "/http://a/");
}

}  // namespace
}  // namespace quire
