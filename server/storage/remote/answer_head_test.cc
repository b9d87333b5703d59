// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/storage/remote/answer_head.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "absl/time/time.h"

namespace quire {
namespace {

AnswerHead GoodHead() {
  AnswerHead head;
  for (const char* line :
       {"HTTP/1.1 206 Partial Content\r\n", "ETag: \"abc\"\r\n",
        "content-range:bytes 10-19/100\r\n", "Content-Length: 10\r\n",
        "\r\n"}) {
    head.AddLine(line);
  }
  return head;
}

const ContentRange kWanted = {.first = 10, .last = 19, .object_size = 100};

TEST(AnswerHeadTest, ParsesContentRange) {
  EXPECT_EQ(ParseContentRange("bytes 10-19/100"), kWanted);
  EXPECT_EQ(ParseContentRange("bytes 0-0/1"),
            (ContentRange{.first = 0, .last = 0, .object_size = 1}));
  for (const char* text :
       {"", "bytes", "bytes 10-19", "bytes 10-19/*", "bytes */100",
        "bytes 19-10/100", "bytes 10-100/100", "bytes -1-5/10", "bytes +1-5/10",
        "bytes 1-5/10 ", "bytes  1-5/10", "Bytes 1-5/10", "bytes 1/5-10",
        "bytes 0-18446744073709551615/18446744073709551616",
        "bytes 1-5/10,6-7/10"}) {
    EXPECT_EQ(ParseContentRange(text), std::nullopt) << text;
  }
}

TEST(AnswerHeadTest, TakesExactlyTheAnswer) {
  EXPECT_TRUE(CheckAnswerHead(GoodHead(), {.range = kWanted}).ok());
  EXPECT_TRUE(
      CheckAnswerHead(GoodHead(), {.range = kWanted, .etag = "\"abc\""}).ok());
}

TEST(AnswerHeadTest, RefusesOthers) {
  const auto check = [](const char* line) {
    AnswerHead head = GoodHead();
    head.AddLine(line);
    return CheckAnswerHead(head, {.range = kWanted, .etag = "\"abc\""});
  };
  for (const char* line :
       {"Content-Range: bytes 10-18/100", "Content-Range: bytes 0-9/100",
        "Content-Range: bytes 10-19/101", "Content-Range: bytes 10-19/*",
        "Content-Length: 9", "Content-Encoding: gzip", "ETag:"}) {
    EXPECT_EQ(check(line).code(), absl::StatusCode::kInternal) << line;
  }
  EXPECT_EQ(check("ETag: \"abd\"").code(), absl::StatusCode::kAborted);
  AnswerHead other = GoodHead();
  other.AddLine("ETag: x");
  other.AddLine("Content-Range: bytes 10-19/101");
  EXPECT_EQ(
      CheckAnswerHead(other, {.range = kWanted, .etag = "\"abc\""}).code(),
      absl::StatusCode::kAborted);
  EXPECT_EQ(check("ETag: W/\"abc\"").code(), absl::StatusCode::kAborted);
  AnswerHead whole = GoodHead();
  whole.status = 200;
  EXPECT_FALSE(CheckAnswerHead(whole, {.range = kWanted}).ok());
}

// One is kept for each object.
TEST(AnswerHeadTest, RefusesALongETag) {
  AnswerHead head = GoodHead();
  head.AddLine("ETag: " + std::string(1024, 'x'));
  EXPECT_TRUE(CheckAnswerHead(head, {.range = kWanted}).ok());
  head.AddLine("ETag: " + std::string(1025, 'x'));
  EXPECT_EQ(CheckAnswerHead(head, {.range = kWanted}).message(),
            "the store answered an ETag of 1025 bytes, expected at most 1024");
  // The message does not hold it either.
  EXPECT_EQ(CheckAnswerHead(head, {.range = kWanted, .etag = "\"abc\""}).code(),
            absl::StatusCode::kInternal);
}

TEST(AnswerHeadTest, TakesWholeObjectsUpToTheLimit) {
  AnswerHead head;
  head.AddLine("HTTP/1.1 200 OK");
  head.AddLine("ETag: x");
  head.AddLine("Content-Length: 10");
  EXPECT_TRUE(CheckAnswerHead(head, {.size_bytes_max = 10}).ok());
  EXPECT_FALSE(CheckAnswerHead(head, {.size_bytes_max = 9}).ok());
  head.status = 206;
  EXPECT_FALSE(CheckAnswerHead(head, {.size_bytes_max = 10}).ok());
}

TEST(AnswerHeadTest, BeginsAgainAtEachStatusLine) {
  AnswerHead head;
  head.AddLine("HTTP/1.1 100 Continue");
  head.AddLine("ETag: old");
  head.AddLine("HTTP/1.1 304 Not Modified");
  EXPECT_EQ(head.status, 304);
  EXPECT_EQ(head.etag, "");
  head.AddLine("HTTP/1.1");
  EXPECT_EQ(head.status, 0);
  head.AddLine("HTTP/1.1 abc");
  EXPECT_EQ(head.status, 0);
}

TEST(AnswerHeadTest, ParsesTimes) {
  EXPECT_EQ(ParseHttpTime("Sun, 06 Nov 1994 08:49:37 GMT"),
            absl::FromUnixSeconds(784111777));
  for (const char* text : {"", "yesterday", "Sun, 06 Nov 1994 08:49:37",
                           "Sun, 36 Nov 1994 08:49:37 GMT"}) {
    EXPECT_EQ(ParseHttpTime(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace quire
