// SPDX-License-Identifier: Apache-2.0
#include "client/http/request/request_conditions.h"

#include "gtest/gtest.h"

namespace quire {
namespace {

using PartKind = SelectedPart::Kind;

constexpr SelectedPart kNothing{.kind = PartKind::kUnsatisfiable};

SelectedPart Part(uint64_t offset, uint64_t size_bytes) {
  return {PartKind::kPart, offset, size_bytes};
}

SelectedPart Whole(uint64_t size_bytes) {
  return {PartKind::kWhole, 0, size_bytes};
}

SelectedPart Select(absl::string_view header, uint64_t size_bytes,
                    bool refuses_several = false) {
  return SelectPart(ParseRangeHeader(header), size_bytes, refuses_several);
}

TEST(RangeHeader, SelectsOneRange) {
  EXPECT_EQ(Select("bytes=0-9", 100), Part(0, 10));
  EXPECT_EQ(Select("bytes=99-99", 100), Part(99, 1));
  EXPECT_EQ(Select("Bytes= 5-6 ", 100), Part(5, 2));
  EXPECT_EQ(Select("bytes=,5-6,,", 100), Part(5, 2));
  EXPECT_EQ(Select("bytes=10-", 100), Part(10, 90));
  EXPECT_EQ(Select("bytes=-7", 100), Part(93, 7));
}

TEST(RangeHeader, ClampsToTheEnd) {
  EXPECT_EQ(Select("bytes=90-100", 100), Part(90, 10));
  EXPECT_EQ(Select("bytes=0-99999999999999999999999", 100), Part(0, 100));
  EXPECT_EQ(Select("bytes=-200", 100), Part(0, 100));
  EXPECT_EQ(Select("bytes=-99999999999999999999999", 100), Part(0, 100));
  EXPECT_EQ(Select("bytes=0-18446744073709551615", UINT64_MAX),
            Part(0, UINT64_MAX));
}

TEST(RangeHeader, RefusesWhatSelectsNothing) {
  EXPECT_EQ(Select("bytes=100-", 100), kNothing);
  EXPECT_EQ(Select("bytes=100-100", 100), kNothing);
  EXPECT_EQ(Select("bytes=18446744073709551616-", 100), kNothing);
  EXPECT_EQ(Select("bytes=-0", 100), kNothing);
  EXPECT_EQ(Select("bytes=0-", 0), kNothing);
  // Content-Range cannot name a part of nothing.
  EXPECT_EQ(Select("bytes=-1", 0), Whole(0));
}

TEST(RangeHeader, IgnoresMalformedOnes) {
  for (const char* header :
       {"", "bytes", "bytes=", "bytes=-", "bytes=--1", "bytes=1", "bytes=2-1",
        "bytes=a-b", "bytes=1-2x", "bytes=+1-2", "bytes=1 -2", "bytes =1-2",
        "items=0-1", "bytes=0-1,x", "bytes=0-1;2-3", "bytes=0x0-1",
        "bytes=1.0-2", "bytes=1-2-3", "bytes:0-1"}) {
    EXPECT_EQ(Select(header, 100), Whole(100)) << header;
  }
}

TEST(RangeHeader, SendsAllForSeveral) {
  EXPECT_EQ(Select("bytes=0-1,5-6", 100), Whole(100));
  // Although none of them selects anything.
  EXPECT_EQ(Select("bytes=200-,300-", 100), Whole(100));
  EXPECT_EQ(Select("bytes=0-1,5-6", 100, /*refuses_several=*/true), kNothing);
}

ConditionResult Evaluate(std::optional<std::string> if_match,
                         std::optional<std::string> if_none_match) {
  return EvaluateConditions({.if_match = std::move(if_match),
                             .if_none_match = std::move(if_none_match),
                             .if_range = {}},
                            "\"a\"");
}

TEST(Conditions, NoneMatch) {
  for (const char* list :
       {"\"a\"", "*", " \"b\" , \"a\"", "W/\"a\"", ",\"a\"", "\"x,y\",\"a\""}) {
    EXPECT_EQ(Evaluate({}, list), ConditionResult::kNotModified) << list;
  }
  for (const char* list :
       {"", "a", "\"b\"", "\"a", "w/\"a\"", "\"b\" \"a\"", "b, \"a\"", "**"}) {
    EXPECT_EQ(Evaluate({}, list), ConditionResult::kProceed) << list;
  }
}

TEST(Conditions, Match) {
  EXPECT_EQ(Evaluate("\"a\"", {}), ConditionResult::kProceed);
  EXPECT_EQ(Evaluate("*", {}), ConditionResult::kProceed);
  EXPECT_EQ(Evaluate("W/\"a\"", {}), ConditionResult::kPreconditionFailed);
  EXPECT_EQ(Evaluate("\"b\"", {}), ConditionResult::kPreconditionFailed);
  EXPECT_EQ(Evaluate("", {}), ConditionResult::kPreconditionFailed);
  // If-Match comes first.
  EXPECT_EQ(Evaluate("\"b\"", "\"a\""), ConditionResult::kPreconditionFailed);
  EXPECT_EQ(Evaluate("\"a\"", "\"a\""), ConditionResult::kNotModified);
}

TEST(Conditions, Range) {
  const auto applies = [](const char* value) {
    return RangeApplies(
        {.if_match = {}, .if_none_match = {}, .if_range = value}, "\"a\"");
  };
  EXPECT_TRUE(RangeApplies({}, "\"a\""));
  EXPECT_TRUE(applies("\"a\""));
  EXPECT_FALSE(applies("W/\"a\""));
  EXPECT_FALSE(applies("\"b\""));
  EXPECT_FALSE(applies("*"));
  EXPECT_FALSE(applies("Wed, 25 Nov 2026 22:00:00 GMT"));
}

}  // namespace
}  // namespace quire
