// SPDX-License-Identifier: Apache-2.0
#include "codecs/filter/filter.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Values by name; names without one are null.
using Values = std::vector<std::pair<std::string, FieldValue>>;

const Values kDocument = {{"lang", std::string("de")},
                          {"url", std::string("https://a/b")},
                          {"price", int64_t{12}},
                          {"score", 0.5},
                          {"is_new", true},
                          {"seen", *ParseFieldTime("2024-01-31")},
                          {"odd", std::nan("")}};

bool Matches(const std::string& text, const Values& values = kDocument) {
  const absl::StatusOr<Filter> filter = Filter::Parse(text);
  EXPECT_THAT(filter, IsOk()) << text;
  if (!filter.ok()) {
    return false;
  }
  std::vector<FieldView> row;
  for (const std::string& name : filter->names()) {
    row.emplace_back();
    for (const auto& [key, value] : values) {
      if (key == name) {
        row.back() = ViewOf(value);
      }
    }
  }
  return filter->Matches(row);
}

TEST(FilterTest, Compares) {
  for (const char* text : {"lang = \"de\"",
                           "lang = 'de'",
                           "lang=\"de\"",
                           "lang != \"fr\"",
                           "lang > \"dd\"",
                           "lang < \"df\"",
                           "lang <= \"de\"",
                           "lang >= \"de\"",
                           "price = 12",
                           "price < 12.5",
                           "price >= 12.0",
                           "price != -12",
                           "score = 0.5",
                           "score < 1",
                           "score > -1e3",
                           "score = 5e-1",
                           "is_new = true",
                           "is_new != FALSE",
                           "is_new > false",
                           "seen = 2024-01-31",
                           "seen < 2024-01-31T00:00:00.000001Z",
                           "seen >= 2024-01-31T01:00:00+01:00",
                           "url prefix \"https://\"",
                           "url prefix \"\"",
                           "url not prefix \"http:\"",
                           "lang in (\"en\", \"de\")",
                           "price in (1, 12.0, 3)",
                           "lang not in ('fr')",
                           "lang is not null",
                           "nothing is null",
                           "lang = \"\\x64\\x65\"",
                           "'a' = 'a' or lang = 'de'"}) {
    if (text[0] != '\'') {
      EXPECT_TRUE(Matches(text)) << text;
      EXPECT_FALSE(Matches(absl::StrCat("not ", text))) << text;
      EXPECT_FALSE(Matches(absl::StrCat("not (", text, ")"))) << text;
      EXPECT_TRUE(Matches(absl::StrCat("NOT\tnot\n", text))) << text;
    }
  }
  EXPECT_TRUE(Matches("a = \"\\\"\\\\\\'\"", {{"a", std::string("\"\\'")}}));
  EXPECT_TRUE(Matches("a = '\\x00\\xfF'", {{"a", std::string("\0\xff", 2)}}));
}

TEST(FilterTest, AndBindsMoreCloselyThanOr) {
  EXPECT_TRUE(Matches("price = 12 or price = 1 and lang = 'fr'"));
  EXPECT_FALSE(Matches("(price = 12 or price = 1) and lang = 'fr'"));
  EXPECT_TRUE(Matches("not price = 1 and lang = 'de'"));
  EXPECT_FALSE(Matches("not (price = 12 and lang = 'de')"));
  EXPECT_TRUE(Matches("price=12 and lang='de' and score=0.5 or lang='fr'"));
}

TEST(FilterTest, NullsFollowSql) {
  for (const char* condition :
       {"no = 1", "no != 1", "no < 1", "no >= 1", "no in (1, 2)",
        "no prefix 'a'", "odd = 1.0", "odd != 1.0", "odd < 1", "odd > 1"}) {
    EXPECT_FALSE(Matches(condition)) << condition;
    EXPECT_FALSE(Matches(absl::StrCat("not (", condition, ")"))) << condition;
    EXPECT_TRUE(Matches(absl::StrCat(condition, " or price = 12")));
    EXPECT_FALSE(Matches(absl::StrCat(condition, " or price = 1")));
    EXPECT_FALSE(Matches(absl::StrCat("not (", condition, " or price = 1)")));
    EXPECT_FALSE(Matches(absl::StrCat(condition, " and price = 12")));
    EXPECT_TRUE(Matches(absl::StrCat("not (", condition, " and price = 1)")));
    EXPECT_FALSE(Matches(absl::StrCat("not (", condition, " and price = 12)")));
  }
  EXPECT_TRUE(Matches("no is null and not no is not null"));
  EXPECT_FALSE(Matches("odd is null"));
}

TEST(FilterTest, NamesAreListedOnce) {
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const Filter filter,
      Filter::Parse(
          "b = 1 and (a = 2 or b = 3) and id = 'x' and time is null"));
  EXPECT_THAT(filter.names(), ElementsAre("b", "a", "id", "time"));
  EXPECT_THAT(filter.field_names(), ElementsAre("b", "a"));
  EXPECT_THAT(filter.text(), StartsWith("b = 1"));
}

TEST(FilterTest, ErrorsNameColumnFoundAndExpected) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"",
       "column 1: found the end of the filter, expected the name of a "
       "field"},
      {"  ", "column 3: found the end of the filter, expected the name"},
      {"lang", "column 5: found the end of the filter, expected an operator"},
      {"lang =", "column 7: found the end of the filter, expected a value"},
      {"lang == 'a'",
       "column 7: found \"=\", expected a value; the operator "
       "of equality is a single ="},
      {"lang = de", "column 8: found \"de\", expected a value"},
      {"lang = null",
       "column 8: found \"null\", expected a value; a field is "
       "compared with null by \"is null\""},
      {"lang = 'de",
       "column 8: found a string without its end, expected "
       "another '"},
      {"lang = \"d\\q\"", "column 10: found a backslash, expected "},
      {"lang = '\\x4'", "column 9: found a backslash, expected "},
      {"lang ~ 'a'", "column 6: found \"~\", expected a name, a value"},
      {"'a' = lang", "column 1: found \"'a'\", expected the name of a field"},
      {"and = 1", "column 1: found \"and\", expected the name of a field"},
      {"a = 1 b = 2",
       "column 7: found \"b\", expected \"and\", \"or\" or the "
       "end"},
      {"a = 1 and",
       "column 10: found the end of the filter, expected the "
       "name"},
      {"(a = 1",
       "column 7: found the end of the filter, expected \"and\", "
       "\"or\" or \")\""},
      {"a = 1)", "column 6: found \")\", expected \"and\""},
      {"a in 1", "column 6: found \"1\", expected \"(\""},
      {"a in ()", "column 7: found \")\", expected a value"},
      {"a in (1,)", "column 9: found \")\", expected a value"},
      {"a in (1 2)", "column 9: found \"2\", expected \",\" or \")\""},
      {"a in (1, 'x')",
       "column 10: found a value of the type string, expected "
       "integer, the type of the first value"},
      {"a not = 1", "column 7: found \"=\", expected \"in\" or \"prefix\""},
      {"a is 1", "column 6: found \"1\", expected \"null\" or \"not null\""},
      {"a is not 1", "column 10: found \"1\", expected \"null\""},
      {"a prefix 1", "column 10: found \"1\", expected a string"},
      {"a = 9223372036854775808",
       "column 5: found \"9223372036854775808\", "
       "expected an integer of 64 bits"},
      {"a = 1e999", "column 5: found \"1e999\", expected a number or a date"},
      {"a = 12ab", "column 5: found \"12ab\", expected a number or a date"},
      {"a = 0x10", "column 5: found \"0x10\", expected a number or a date"},
      {"a = 2024-02-30",
       "column 5: found \"2024-02-30\", expected a date or "
       "time that exists"},
      {"\xc3\xa4 = 1", "column 1: found \"\xc3\xa4\", expected"},
      // A character of two bytes is one column.
      {"a = '\xc3\xa4' b", "column 9: found \"b\""},
      {std::string("a\0b", 3), "column 2: found \"\\x00\", expected"}};
  for (const auto& [text, message] : cases) {
    EXPECT_THAT(
        Filter::Parse(text),
        FailsWith(absl::StatusCode::kInvalidArgument, StartsWith(message)))
        << text;
  }
}

TEST(FilterTest, HostsAndDomainsAreThoseOfTheId) {
  const auto matches = [](const std::string& text, const std::string& id) {
    return Matches(text, {{"id", id}, {"domain", std::string("x")}});
  };
  for (const char* id :
       {"https://www.news.test:8443/a", "urn:pageinfo:http://news.test/",
        "screenshot:https://NEWS.test/", "dns:news.test"}) {
    EXPECT_TRUE(matches("host \"news.test\"", id)) << id;
    EXPECT_TRUE(matches("HOST 'www.news.test'", id)) << id;
    EXPECT_TRUE(matches("Domain \"news.test\"", id)) << id;
    EXPECT_TRUE(matches("domain 'test' and not host 'test'", id)) << id;
    EXPECT_FALSE(matches("not domain 'news.test'", id)) << id;
  }
  EXPECT_TRUE(matches("domain 'news.test'", "http://shop.news.test/"));
  EXPECT_FALSE(matches("host 'news.test'", "http://shop.news.test/"));
  EXPECT_FALSE(matches("domain 'news.test'", "http://fakenews.test/"));
  EXPECT_FALSE(
      matches("domain 'news.test'", "http://a.test/?http://news.test"));
  // Not unknown: other documents are not of the domain.
  EXPECT_TRUE(matches("not domain 'news.test'", "news.test/index.html"));
  // Fields of these names keep their meaning.
  EXPECT_TRUE(matches("domain = 'x' and domain 'a.test'", "http://a.test/"));
  EXPECT_TRUE(matches("domain in ('x') and host is null", "a"));
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"domain 'http://news.test'",
       "column 8: found \"'http://news.test'\", expected the name of a host"},
      {"host ''", "column 6: found \"''\", expected the name of a host"},
      {"domain '*.news.test'", "column 8: found"},
      {"domain 'www.news.test'",
       "column 8: found \"'www.news.test'\", "
       "expected a domain without www."},
      {"domain not 'news.test'", "column 12: found"},
      {"domain 'a.test' 'b.test'", "column 17: found"}};
  for (const auto& [text, message] : cases) {
    EXPECT_THAT(
        Filter::Parse(text),
        FailsWith(absl::StatusCode::kInvalidArgument, StartsWith(message)))
        << text;
  }
  QUIRE_ASSERT_OK_AND_ASSIGN(const Filter filter,
                             Filter::Parse("domain 'a.test' or id = 'b'"));
  EXPECT_THAT(filter.names(), ElementsAre("id"));
  QUIRE_EXPECT_OK(filter.Check({}));
}

TEST(FilterTest, SizesAreLimited) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '(') + "a=1" + std::string(depth, ')');
  };
  QUIRE_EXPECT_OK(Filter::Parse(nested(kFilterDepthMax)));
  EXPECT_THAT(Filter::Parse(nested(kFilterDepthMax + 1)),
              FailsWith(absl::StatusCode::kInvalidArgument,
                        AllOf(StartsWith("column 65: found \"(\""),
                              HasSubstr("at most 64"))));
  std::string nots;
  for (size_t i = 0; i <= kFilterDepthMax; ++i) {
    nots += "not ";
  }
  EXPECT_THAT(Filter::Parse(nots + "a=1"),
              HasCode(absl::StatusCode::kInvalidArgument));
  // Depth is that of what is open, not a sum.
  std::string many = "(a=1)";
  for (size_t i = 1; i < kFilterValuesMax; ++i) {
    many += "or(a=1)";
  }
  QUIRE_EXPECT_OK(Filter::Parse(many));
  EXPECT_THAT(Filter::Parse(many + "or a is null"),
              FailsWith(absl::StatusCode::kInvalidArgument,
                        HasSubstr("at most 1024 values")));
  const std::string padding(kFilterSizeBytesMax - 3, ' ');
  QUIRE_EXPECT_OK(Filter::Parse("a=1" + padding));
  EXPECT_THAT(Filter::Parse("a=1 " + padding),
              FailsWith(absl::StatusCode::kInvalidArgument,
                        "the filter has 16385 bytes, must have at most 16384"));
  EXPECT_THAT(Filter::Parse(std::string(65, 'a') + " = 1"),
              FailsWith(absl::StatusCode::kInvalidArgument,
                        "column 1: found a name of 65 bytes, expected at most "
                        "64"));
}

absl::Status Check(const std::string& text) {
  const absl::StatusOr<Filter> filter = Filter::Parse(text);
  EXPECT_THAT(filter, IsOk()) << text;
  return filter->Check({{"lang", FieldType::kString},
                        {"price", FieldType::kInteger},
                        {"score", FieldType::kFloat},
                        {"is_new", FieldType::kBoolean},
                        {"seen", FieldType::kTime}});
}

TEST(FilterTest, ChecksNamesAndTypes) {
  QUIRE_EXPECT_OK(
      Check("lang = 'a' and price < 1.5 and score > 1 and "
            "is_new = true and seen < 2024-01-01"));
  QUIRE_EXPECT_OK(
      Check("id prefix 'a' and ordinal < 5 and size > 1e3 and time "
            ">= 2024-01-01 and type = 'text/html' and record_type "
            "in ('response', 'revisit')"));
  QUIRE_EXPECT_OK(Check("price is null and not seen is null"));
  EXPECT_THAT(
      Check("price = 1 and Lang = 'a'"),
      FailsWith(absl::StatusCode::kNotFound,
                "column 15: no field \"Lang\"; expected a field of the archive "
                "or an attribute: lang, price, score, is_new, seen, id, "
                "ordinal, size, time, type, record_type"));
  EXPECT_THAT(Check("domain = 'news.test'"),
              FailsWith(absl::StatusCode::kNotFound,
                        HasSubstr("has no operator: domain \"news.test\"")));
  EXPECT_THAT(Check("status = 404"),
              FailsWith(absl::StatusCode::kNotFound,
                        HasSubstr("if the archive has an index of captures")));
  EXPECT_THAT(Check("lang = 1"),
              FailsWith(absl::StatusCode::kInvalidArgument,
                        "column 8: found a value of the type integer, expected "
                        "string, the type of lang: \"text\" in quotes"));
  EXPECT_THAT(Check("time = '2024-01-01'"),
              FailsWith(absl::StatusCode::kInvalidArgument,
                        HasSubstr("expected time, the type of time: "
                                  "2024-01-31 or ")));
  EXPECT_THAT(Check("price prefix 'a'"),
              FailsWith(absl::StatusCode::kInvalidArgument,
                        "column 1: prefix expects a string, but price has the "
                        "type integer"));
  for (const char* text : {"lang in (1, 2)", "price = true", "is_new = 1",
                           "seen = 1", "score = 2024-01-01", "ordinal = 'a'",
                           "not (lang is null or size = "
                           "true)"}) {
    EXPECT_THAT(Check(text), HasCode(absl::StatusCode::kInvalidArgument))
        << text;
  }
}

TEST(FilterTest, FieldsHideAttributesOfCaptures) {
  EXPECT_THAT(WithCaptureAttributes({{"status", FieldType::kString}}),
              ElementsAre(FieldColumn{"status", FieldType::kString},
                          FieldColumn{"digest", FieldType::kString}));
  EXPECT_THAT(WithCaptureAttributes({}),
              ElementsAre(FieldColumn{"digest", FieldType::kString},
                          FieldColumn{"status", FieldType::kInteger}));
}

TEST(FilterTest, NamesAttributesOfCaptures) {
  const Filter filter = *Filter::Parse("status = 1 or digest = 'a' or n = 1");
  EXPECT_THAT(filter.CaptureNames({}), ElementsAre("digest", "status"));
  EXPECT_THAT(filter.CaptureNames({{"status", FieldType::kString}}),
              ElementsAre("digest"));
  EXPECT_THAT(Filter::Parse("n = 1")->CaptureNames({}), ElementsAre());
}

TEST(FilterTest, KnowsWhatMatchesNulls) {
  const std::vector<std::string> nulls = {"digest", "status"};
  for (const char* text :
       {"status = 404", "status != 404", "not (status = 404)",
        "status in (1, 2) or digest prefix 'a'", "status is not null",
        "status is null and digest is not null", "not (status is null)",
        "status = 1 and (n = 1 or n = 2)", "not (status = 1 or n = 1)"}) {
    EXPECT_FALSE(Filter::Parse(text)->CouldMatchNulls(nulls)) << text;
  }
  for (const char* text :
       {"status is null", "not (status is not null)", "status = 1 or n = 1",
        "not (status is not null and n = 1)", "not (status = 1 and n = 1)"}) {
    EXPECT_TRUE(Filter::Parse(text)->CouldMatchNulls(nulls)) << text;
  }
  EXPECT_TRUE(Filter::Parse("status = 404")->CouldMatchNulls({}));
}

TEST(FilterTest, AttributesHaveValues) {
  const DocumentAttributeValues none = {.id = "a"};
  const DocumentAttributeValues all = {.id = "a",
                                       .ordinal = UINT64_MAX,
                                       .size_bytes = 7,
                                       .time_ms = 1500,
                                       .type = "text/html",
                                       .record_type = "response"};
  std::vector<FieldView> values;
  for (const FieldColumn& attribute : DocumentAttributes()) {
    values.push_back(AttributeOf(all, attribute.name));
    EXPECT_EQ(TypeOf(values.back()), attribute.type);
    EXPECT_EQ(DocumentAttributeType(attribute.name), attribute.type);
    EXPECT_FALSE(CheckFieldName(attribute.name).ok());
  }
  EXPECT_THAT(values,
              ElementsAre(FieldView(absl::string_view("a")),
                          FieldView(int64_t{INT64_MAX}), FieldView(int64_t{7}),
                          FieldView(FieldTime{1500000}),
                          FieldView(absl::string_view("text/html")),
                          FieldView(absl::string_view("response"))));
  EXPECT_EQ(AttributeOf(none, "time"), FieldView());
  EXPECT_EQ(AttributeOf(none, "type"), FieldView());
  EXPECT_EQ(AttributeOf(none, "lang"), FieldView());
  const DocumentAttributeValues late = {.time_ms = INT64_MAX};
  EXPECT_EQ(TypeOf(AttributeOf(late, "time")), FieldType::kTime);
}

TEST(FilterTest, ManyFieldsAreCountedInErrors) {
  std::vector<FieldColumn> columns;
  for (int i = 0; i < 23; ++i) {
    columns.push_back({absl::StrCat("f", i), FieldType::kString});
  }
  QUIRE_ASSERT_OK_AND_ASSIGN(const Filter filter, Filter::Parse("g = 'a'"));
  EXPECT_THAT(filter.Check(columns),
              FailsWith(absl::StatusCode::kNotFound,
                        HasSubstr("f18, f19, 3 others, id, ")));
}

}  // namespace
}  // namespace quire
