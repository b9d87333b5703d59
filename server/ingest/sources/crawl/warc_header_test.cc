// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/crawl/warc_header.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(WarcHeaderTest, ReadsAllFields) {
  const std::string text =
      "WARC/1.0\r\n"
      "WARC-Type: Response\r\n"
      "warc-target-uri:<http://example.org/a?b=c>\r\n"
      "WARC-DATE: 2020-02-29T12:34:56Z\r\n"
      "WARC-Record-ID: <urn:uuid:1234>\r\n"
      "WARC-Concurrent-To: <urn:uuid:5678>\r\n"
      "WARC-Payload-Digest: sha1:ABC\r\n"
      "Content-Type: Application/HTTP; msgtype=response\r\n"
      "X-Folded: one\r\n"
      " two: three\r\n"
      "\tfour\r\n"
      "content-length:   17  \r\n"
      "\r\n";
  QUIRE_ASSERT_OK_AND_ASSIGN(const WarcHeader header,
                             ParseWarcHeader(AsBytes(text)));
  EXPECT_EQ(header.record_type, "response");
  EXPECT_EQ(header.target_uri, "http://example.org/a?b=c");
  EXPECT_EQ(header.record_id, "urn:uuid:1234");
  EXPECT_EQ(header.concurrent_to, "urn:uuid:5678");
  EXPECT_EQ(header.payload_digest, "sha1:ABC");
  EXPECT_EQ(header.date_ms, 1582979696000);
  EXPECT_EQ(header.media_type, "application/http");
  EXPECT_EQ(header.content_length, 17);
  EXPECT_TRUE(header.crlf);
}

TEST(WarcHeaderTest, ReadsValuesThatContinueOnTheNextLine) {
  const std::string text =
      "WARC/1.1\nWARC-Target-URI: http://example.org/\n  very/long\n"
      "Content-Length:\n 5\n\n";
  QUIRE_ASSERT_OK_AND_ASSIGN(const WarcHeader header,
                             ParseWarcHeader(AsBytes(text)));
  EXPECT_EQ(header.target_uri, "http://example.org/ very/long");
  EXPECT_EQ(header.content_length, 5);
  EXPECT_FALSE(header.crlf);
}

TEST(WarcHeaderTest, TakesTheFirstOfTwo) {
  const std::string text =
      "WARC/1.1\r\nWARC-Type: metadata\r\nWARC-Type: response\r\n"
      "Content-Length: 5\r\nContent-Length: 05\r\n\r\n";
  QUIRE_ASSERT_OK_AND_ASSIGN(const WarcHeader header,
                             ParseWarcHeader(AsBytes(text)));
  EXPECT_EQ(header.record_type, "metadata");
  EXPECT_EQ(header.content_length, 5);
}

TEST(WarcHeaderTest, RefusesTheRest) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "must start with WARC/1.0"},
      {"WARC/2.0\r\nContent-Length: 1\r\n\r\n", "WARC/2.0"},
      {"WARC/0.9\r\nContent-Length: 1\r\n\r\n", "WARC/0.9"},
      {"WARC/1.0\r\nX: y\r\nWARC/1.0\r\nContent-Length: 5\r\n\r\n",
       "another record begins in it"},
      {"WARC/1.0\r\nX: yWARC/1.0\r\nX: y\r\nContent-Length: 5\r\n\r\n",
       "another record begins in it"},
      {"WARC/1.0\r\nWARC-TyWARC/1.0\r\nContent-Length: 5\r\n\r\n",
       "another record begins in it"}};
  for (const auto& [text, message] : cases) {
    EXPECT_THAT(ParseWarcHeader(AsBytes(text)),
                FailsWith(absl::StatusCode::kDataLoss, HasSubstr(message)))
        << text;
  }
}

TEST(WarcHeaderTest, NamesWrongLengths) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "must be given"},
      {"Content-Length 5\r\n", "must be given"},
      {": 5\r\n", "must be given"},
      {"Content-Length:\r\n", "must be a number of bytes, got \"\""},
      {"Content-Length: -5\r\n", "must be a number of bytes, got \"-5\""},
      {"Content-Length: +5\r\n", "must be a number of bytes, got \"+5\""},
      {"Content-Length: 5a\r\n", "must be a number of bytes, got \"5a\""},
      {"Content-Length: 9223372036854775808\r\n", "at most 2^63 - 1, got \""},
      {"Content-Length: 99999999999999999999999\r\n",
       "at most 2^63 - 1, got \""},
      {"Content-Length: 5\r\nContent-Length: 6\r\n", "got 5 and 6"}};
  for (const auto& [fields, oddity] : cases) {
    const std::string text = absl::StrCat("WARC/1.0\r\n", fields, "\r\n");
    QUIRE_ASSERT_OK_AND_ASSIGN(const WarcHeader header,
                               ParseWarcHeader(AsBytes(text)));
    EXPECT_EQ(header.content_length, std::nullopt) << fields;
    ASSERT_FALSE(header.oddities.empty()) << fields;
    EXPECT_THAT(header.oddities.back(), HasSubstr(oddity));
  }
}

// A field may end like that, and two may differ.
TEST(WarcHeaderTest, KeepsHeadersThatLookLikeTwo) {
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const WarcHeader header,
      ParseWarcHeader(
          AsBytes("WARC/1.0\r\nContent-Length: 5\r\n"
                  "WARC-Target-URI: http://e.org/warc/1.0\r\n\r\n")));
  EXPECT_EQ(header.target_uri, "http://e.org/warc/1.0");
  EXPECT_THAT(header.oddities, ElementsAre());
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const WarcHeader twice,
      ParseWarcHeader(AsBytes("WARC/1.0\r\nContent-Length: 5\r\n"
                              "WARC-Target-URI: a\r\nWARC-Target-URI: b\r\n"
                              "WARC-Target-URI: a\r\n\r\n")));
  EXPECT_EQ(twice.target_uri, "a");
  EXPECT_THAT(twice.oddities,
              ElementsAre(HasSubstr("WARC-Target-URI must be one, got \"a\" "
                                    "and \"b\"")));
}

TEST(WarcHeaderTest, ReadsDrafts) {
  for (const char* const version :
       {"WARC/0.17", "WARC/0.18", "WARC/1.0 ", "warc/1.1"}) {
    const std::string text =
        std::string(version) + "\r\nContent-Length: 5\r\n\r\n";
    QUIRE_ASSERT_OK_AND_ASSIGN(const WarcHeader header,
                               ParseWarcHeader(AsBytes(text)));
    EXPECT_EQ(header.content_length, 5);
    EXPECT_TRUE(header.oddities.empty());
  }
}

TEST(WarcHeaderTest, NotesWhatItIgnores) {
  const std::string text =
      "WARC/1.0\r\nno colon\r\nWARC-Date: 2020-02-30T00:00:00Z\r\n"
      "Content-Length: 5\r\n\r\n";
  QUIRE_ASSERT_OK_AND_ASSIGN(const WarcHeader header,
                             ParseWarcHeader(AsBytes(text)));
  EXPECT_EQ(header.content_length, 5);
  EXPECT_EQ(header.date_ms, std::nullopt);
  EXPECT_THAT(header.oddities,
              ElementsAre(AllOf(HasSubstr("NAME: VALUE, got \"no colon\""),
                                HasSubstr("ignored")),
                          AllOf(HasSubstr("got \"2020-02-30T00:00:00Z\""),
                                HasSubstr("without a time"))));
}

TEST(WarcHeaderTest, TakesNoLongDigest) {
  const auto parse = [](size_t size) {
    return ParseWarcHeader(AsBytes(absl::StrCat(
        "WARC/1.0\r\nWARC-Payload-Digest: ", std::string(size, 'a'),
        "\r\nContent-Length: 5\r\n\r\n")));
  };
  QUIRE_ASSERT_OK_AND_ASSIGN(WarcHeader header, parse(256));
  EXPECT_EQ(header.payload_digest.size(), 256U);
  QUIRE_ASSERT_OK_AND_ASSIGN(header, parse(257));
  EXPECT_EQ(header.payload_digest, "");
  EXPECT_THAT(header.oddities,
              ElementsAre(HasSubstr("at most 256 bytes, got 257")));
}

TEST(WarcDateTest, ReadsAllFormsOfTheStandard) {
  const std::vector<std::pair<std::string, int64_t>> cases = {
      {"1970-01-01T00:00:00Z", 0},
      {"2016-01-11T23:24:25Z", 1452554665000},
      {"2016-01-11T23:24:25.4Z", 1452554665400},
      {"2016-01-11T23:24:25.412030Z", 1452554665412},
      {"2016-01-11T23:24:25.999999999Z", 1452554665999},
      {"2016-01-11T23:24Z", 1452554640000},
      {"2016-01-11", 1452470400000},
      {"2016-01", 1451606400000},
      {"2016", 1451606400000},
      {"2016-12-31T23:59:60Z", 1483228800000},
      {"1969-12-31T23:59:59.5Z", -500}};
  for (const auto& [text, milliseconds] : cases) {
    EXPECT_EQ(ParseWarcDate(text), milliseconds) << text;
  }
}

TEST(WarcDateTest, ReadsWhatCrawlersWrite) {
  const std::vector<std::pair<std::string, int64_t>> cases = {
      {"20160111232425", 1452554665000},
      {"2016-01-11 23:24:25Z", 1452554665000},
      {"2016-01-11T23:24:25", 1452554665000},
      {"2016-01-11T23:24:25.4", 1452554665400},
      {"2016-01-11T23:24", 1452554640000},
      {"2016-01-12T00:24:25+01:00", 1452554665000},
      {"2016-01-12T00:24:25+01", 1452554665000},
      {"2016-01-11T13:54:25.4-0930", 1452554665400},
      {"2016-01-11T23:24:25+00:00", 1452554665000}};
  for (const auto& [text, milliseconds] : cases) {
    EXPECT_EQ(ParseWarcDate(text), milliseconds) << text;
  }
}

TEST(WarcDateTest, RefusesTheRest) {
  for (const char* text : {"",
                           "16",
                           "2016-",
                           "2016-1-1",
                           "2016-13",
                           "2016-02-30",
                           "2016-01-11T23",
                           "2016-01-11T23Z",
                           "2016-01-11Z",
                           "2016-01-11T24:00:00Z",
                           "2016-01-11T23:60:00Z",
                           "2016-01-11T23:24:25.Z",
                           "2016-01-11T23:24:25.1234567890Z",
                           "2016-01-11T23:24:25Z ",
                           "2016-01-11T23:24:25+24:00",
                           "2016-01-11T23:24:25+01:60",
                           "2016-01-11T23:24:25+1",
                           "2016-01-11T23:24:25+01:0",
                           "2016-01-11T23:24:25+01:00Z",
                           "0000-00-00T00:00:00Z",
                           "20161311232425",
                           "201601112324",
                           "2016011123242",
                           "20160111232425Z"}) {
    EXPECT_EQ(ParseWarcDate(text), std::nullopt) << text;
  }
}

TEST(HttpMediaTypeTest, ReadsTheFirstHeaderOnly) {
  EXPECT_EQ(HttpMediaType(AsBytes("HTTP/1.1 200 OK\r\nServer: x\r\n"
                                  "content-type:  Text/HTML;charset=x\r\n\r\n"
                                  "body")),
            "text/html");
  EXPECT_EQ(HttpMediaType(AsBytes("HTTP/1.1 200 OK\r\nServer: x\r\n\r\n"
                                  "Content-Type: text/html\r\n\r\n")),
            "");
  EXPECT_EQ(HttpMediaType(AsBytes("HTTP/1.1 200 OK")), "");
  EXPECT_EQ(HttpMediaType(AsBytes("GET / HTTP/1.1\r\n\r\n")), std::nullopt);
  EXPECT_EQ(HttpMediaType(AsBytes("")), std::nullopt);
}

TEST(HttpMediaTypeTest, PassesOverEmptyLines) {
  EXPECT_EQ(HttpMediaType(AsBytes(
                "\r\n\nHTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")),
            "text/html");
  EXPECT_EQ(HttpMediaType(AsBytes("\r\n\r\n")), std::nullopt);
}

TEST(HttpStatusTest, TakesThreeDigits) {
  const auto status = [](absl::string_view text) {
    return HttpStatus(AsBytes(text));
  };
  EXPECT_EQ(status("HTTP/1.1 404 Not Found\r\n"), 404U);
  EXPECT_EQ(status("\r\nHTTP/1.0 \t200\n"), 200U);
  EXPECT_EQ(status("HTTP/2 204"), 204U);
  for (const char* const none :
       {"", "HTTP/1.1", "HTTP/1.1 ", "HTTP/1.1 20", "HTTP/1.1 2000 OK",
        "HTTP/1.1 OK", "HTTP/1.1\n200", "GET / HTTP/1.1", "ICY 200 OK"}) {
    EXPECT_EQ(status(none), 0U) << none;
  }
}

TEST(HttpMediaTypeTest, DoesNotTakeHalfALine) {
  EXPECT_EQ(HttpMediaType(AsBytes("HTTP/1.1 200 OK\r\nContent-Type: text/ht")),
            "");
}

}  // namespace
}  // namespace quire
