// SPDX-License-Identifier: Apache-2.0
#include "client/quire/internal/answer_check.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "testing/base/status_matchers.h"

namespace quire {
namespace {

v1::ByteRange Range(uint64_t offset, uint64_t size_bytes) {
  return ToProto(ByteSpan{offset, size_bytes});
}

TEST(AnswerCheckTest, FindsTheSpanOfAPart) {
  v1::Document document;
  document.set_ordinal(4);
  *document.mutable_range() = Range(1000, 50);
  DocumentKey key = DocumentKey::Ordinal(4);
  EXPECT_EQ(*ExpectedSpan(key, &document), (ByteSpan{1000, 50}));
  key.part = ByteSpan{10, 40};
  EXPECT_EQ(*ExpectedSpan(key, &document), (ByteSpan{1010, 40}));
  key.part = ByteSpan{10, 41};
  EXPECT_THAT(ExpectedSpan(key, &document),
              HasCode(absl::StatusCode::kInternal));
  key.part = ByteSpan{~uint64_t{0}, 2};
  EXPECT_THAT(ExpectedSpan(key, &document),
              HasCode(absl::StatusCode::kInternal));
  EXPECT_THAT(ExpectedSpan(key, nullptr), HasCode(absl::StatusCode::kInternal));
  EXPECT_THAT(ExpectedSpan(DocumentKey::Id("x"), &document),
              HasCode(absl::StatusCode::kInternal));
}

TEST(AnswerCheckTest, FollowsPieces) {
  SpanFollower follower(ByteSpan{100, 10});
  QUIRE_EXPECT_OK(follower.Take(Range(100, 4)));
  EXPECT_THAT(follower.Take(Range(100, 4)),
              HasCode(absl::StatusCode::kInternal));
  EXPECT_THAT(follower.Take(Range(104, 7)),
              HasCode(absl::StatusCode::kInternal));
  EXPECT_THAT(follower.Take(Range(105, 5)),
              HasCode(absl::StatusCode::kInternal));
  EXPECT_THAT(follower.Finish(), HasCode(absl::StatusCode::kDataLoss));
  QUIRE_EXPECT_OK(follower.Take(Range(104, 6)));
  QUIRE_EXPECT_OK(follower.Finish());
}

TEST(AnswerCheckTest, DescribesTargetsForPeople) {
  EXPECT_EQ(DescribeTarget(ByteSpan{5, 3}), "3 bytes at offset 5");
  EXPECT_EQ(DescribeTarget(ByteSpan{5, 1}), "1 byte at offset 5");
  EXPECT_EQ(DescribeTarget(DocumentKey::Ordinal(5)), "document number 5");
  DocumentKey key = DocumentKey::Id("a\x1B");
  key.occurrence = 1;
  EXPECT_EQ(DescribeTarget(key), "document \"a\\x1B\", occurrence 1");
  key.occurrence.reset();
  key.record_types = {"request", "\x1B"};
  EXPECT_EQ(DescribeTarget(key),
            "document \"a\\x1B\", of type \"request\" or \"\\x1B\"");
  EXPECT_LT(DescribeTarget(DocumentKey::Id(std::string(10000, 'x'))).size(),
            300u);
}

}  // namespace
}  // namespace quire
