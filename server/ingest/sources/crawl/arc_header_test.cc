// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/crawl/arc_header.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<WarcHeader> Parse(const std::string& line) {
  return ParseArcHeader(AsBytes(line));
}

// 2005-06-22T19:08:50Z.
constexpr int64_t kTimeMs = 1119467330000;

TEST(ArcHeaderTest, ParsesBothVersions) {
  for (const char* const line :
       {"http://e.org/a?b 1.2.3.4 20050622190850 text/html 202\n",
        "http://e.org/a?b 1.2.3.4 20050622190850 text/html 202\r\n",
        "http://e.org/a?b 1.2.3.4 20050622190850 Text/HTML; charset=x 202\n",
        "http://e.org/a?b 1.2.3.4 20050622190850 text/html 200 fac069150613fe55"
        "599cc7fa88aa089d - 209 IA-001102.arc 202\n"}) {
    SCOPED_TRACE(line);
    QUIRE_ASSERT_OK_AND_ASSIGN(const WarcHeader header, Parse(line));
    EXPECT_EQ(header.target_uri, "http://e.org/a?b");
    EXPECT_EQ(header.date_ms, kTimeMs);
    EXPECT_EQ(header.media_type, "text/html");
    EXPECT_EQ(header.content_length, 202);
    EXPECT_EQ(header.record_type, "response");
    EXPECT_TRUE(header.oddities.empty());
  }
}

TEST(ArcHeaderTest, ParsesOtherUrls) {
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const WarcHeader file,
      Parse("filedesc://IA.arc 0 19960923142103 text/plain 76\n"));
  EXPECT_EQ(file.target_uri, "filedesc://IA.arc");
  EXPECT_EQ(file.record_type, "warcinfo");
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const WarcHeader spaces,
      Parse("http://e.org/a b 20010101000000 c 0.0.0.0 20050622190850 "
            "no-type 0\n"));
  EXPECT_EQ(spaces.target_uri, "http://e.org/a b 20010101000000 c");
  EXPECT_EQ(spaces.date_ms, kTimeMs);
  EXPECT_EQ(spaces.media_type, "");
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const WarcHeader dns,
      Parse("dns:e.org 1.1.1.1 20051322190850 text/dns 5"));
  // There is no month 13.
  EXPECT_EQ(dns.date_ms, std::nullopt);
  EXPECT_THAT(dns.oddities, ElementsAre(HasSubstr("got \"20051322190850\"")));
  EXPECT_EQ(dns.target_uri, "dns:e.org");
}

TEST(ArcHeaderTest, NamesOddDates) {
  const std::string url = "http://e.org/ 0.0.0.0 null x";

  const struct {
    std::string date;
    std::optional<int64_t> time_ms;
    const char* taken;
  } cases[] = {{"200506221908", kTimeMs - 50'000, "as that minute"},
               {"null", std::nullopt, "without a time"},
               {"-", std::nullopt, "without a time"},
               {"20050622", std::nullopt, "without a time"},
               {"20050622190850123", std::nullopt, "without a time"}};

  for (const auto& c : cases) {
    for (const char* const address : {"1.2.3.4", "2001:db8::1"}) {
      QUIRE_ASSERT_OK_AND_ASSIGN(
          const WarcHeader header,
          Parse(absl::StrCat(url, " ", address, " ", c.date,
                             " text/html 404 - - 5 x.arc 202\n")));
      EXPECT_EQ(header.target_uri, url);
      EXPECT_EQ(header.date_ms, c.time_ms);
      EXPECT_EQ(header.media_type, "text/html");
      EXPECT_THAT(header.oddities,
                  ElementsAre(AllOf(HasSubstr("got \"" + c.date + "\""),
                                    HasSubstr(c.taken))));
    }
  }
}

TEST(ArcHeaderTest, NamesNegativeLengths) {
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const WarcHeader header,
      Parse("http://e.org/ 1.2.3.4 20050622190850 text/html -1\n"));
  EXPECT_EQ(header.content_length, std::nullopt);
  EXPECT_THAT(header.oddities, ElementsAre(HasSubstr("got \"-1\"")));
}

TEST(ArcHeaderTest, RefusesOtherLines) {
  for (const char* const line :
       {"", "\n", " ", "http://e.org/", "20050622190850 text/html 202",
        "1.2.3.4 20050622190850 text/html 202",
        "e.org 1.2.3.4 20050622190850 text/html 202",
        "1http://e.org/ 1.2.3.4 20050622190850 text/html 202",
        "http://e.org/ 1.2.3.4 200 text/html 202",
        "http://e.org/ 1.2.3.4 nil text/html 202",
        "http://e.org/ host null text/html 202",
        "http://e.org/ 1.2.3.4 20050622190850 text/html --2",
        "http://e.org/ 1.2.3.4 20050622190850 text/html -",
        "http://e.org/ 1.2.3.4 20050622190850 text/html 0x2",
        "http://e.org/ 1.2.3.4 20050622190850 text/html ",
        "http://e.org/  20050622190850 text/html 1",
        "\nhttp://e.org/ 1.2.3.4 20050622190850 text/html 1"}) {
    EXPECT_THAT(Parse(line), FailsWith(absl::StatusCode::kDataLoss,
                                       HasSubstr("must start with URL")))
        << line;
  }
  for (const char* const length :
       {"9223372036854775808", "18446744073709551616",
        "99999999999999999999"}) {
    EXPECT_THAT(
        Parse(std::string("u:x 1.2.3.4 20050622190850 text/html ") + length),
        FailsWith(absl::StatusCode::kDataLoss, HasSubstr("at most 2^63 - 1")));
  }
  EXPECT_THAT(Parse("u:x 1.2.3.4 20050622190850 text/html 9223372036854775807"),
              IsOk());
}

TEST(ArcHeaderTest, RecognisesStarts) {
  EXPECT_TRUE(IsArcStart("http://e.org/ 1.2.3.4 20050622190850 t/h 1\nabc"));
  EXPECT_TRUE(IsArcStart("http://e.org/that-goes-o"));
  EXPECT_FALSE(IsArcStart("Content-Type: text/html\r\n"));
  EXPECT_FALSE(IsArcStart("plain text"));
  EXPECT_FALSE(IsArcStart(""));
}

}  // namespace
}  // namespace quire
