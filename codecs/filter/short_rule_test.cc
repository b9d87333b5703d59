// SPDX-License-Identifier: Apache-2.0
#include "codecs/filter/short_rule.h"

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/filter/field_value.h"
#include "codecs/filter/filter.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

using Examples = std::vector<std::pair<std::string, std::string>>;

TEST(ShortRuleTest, StandsForAFilter) {
  const Examples examples = {
      {"domain news.test", "domain \"news.test\""},
      {"host\twww.news.test ", "host \"www.news.test\""},
      {"domain news.test 2019..2021",
       "domain \"news.test\" and time >= 2019-01-01T00:00:00Z and "
       "time < 2022-01-01T00:00:00Z"},
      {"domain news.test time 2020-02",
       "domain \"news.test\" and time >= 2020-02-01T00:00:00Z and "
       "time < 2020-03-01T00:00:00Z"},
      {"time 2020-12",
       "time >= 2020-12-01T00:00:00Z and "
       "time < 2021-01-01T00:00:00Z"},
      {"time 202002..20200229",
       "time >= 2020-02-01T00:00:00Z and "
       "time < 2020-03-01T00:00:00Z"},
      {"time 2020-02-28..", "time >= 2020-02-28T00:00:00Z"},
      {"time ..20191231235959", "time < 2020-01-01T00:00:00Z"},
      {"time 2019-05-31T12:30:45..2019-05-31T14:30:45.5+02:00",
       "time >= 2019-05-31T12:30:45Z and time < 2019-05-31T12:30:45.500001Z"},
      {"time 2019053112",
       "time >= 2019-05-31T12:00:00Z and "
       "time < 2019-05-31T13:00:00Z"},
      {"time 201905311230",
       "time >= 2019-05-31T12:30:00Z and "
       "time < 2019-05-31T12:31:00Z"},
      {"time 9999", "time >= 9999-01-01T00:00:00Z"},
      {"time ..9999-12", "time is not null"},
      {"status 404", "status = 404"},
      {"status 4xx host a.test",
       "status >= 400 and status < 500 and host \"a.test\""},
      {"status 30X", "status >= 300 and status < 310"},
      {"digest sha1:OB3QTUZLBNUR7BXZQ4OPLCKEKUZZNKRJ",
       "digest = \"sha1:OB3QTUZLBNUR7BXZQ4OPLCKEKUZZNKRJ\""},
      {"digest ob3qtuzlbnur7bxzq4oplckekuzznkrj",
       "digest = \"sha1:OB3QTUZLBNUR7BXZQ4OPLCKEKUZZNKRJ\""},
      {"digest sha256:aB", "digest = \"sha256:aB\""}};
  for (const auto& [rule, filter] : examples) {
    const absl::StatusOr<std::string> found = FilterOfShortRule(rule);
    ASSERT_THAT(found, IsOk()) << rule;
    EXPECT_EQ(*found, filter) << rule;
    const absl::StatusOr<Filter> parsed = Filter::Parse(*found);
    ASSERT_THAT(parsed, IsOk()) << rule;
    QUIRE_EXPECT_OK(parsed->Check(CaptureAttributes()));
  }
}

TEST(ShortRuleTest, ErrorsNameFoundAndExpected) {
  const Examples examples = {
      {"", "expected a rule such as domain news.test"},
      {"news.test", "found \"news.test\", expected host, domain, status"},
      {"2019..2021", "found \"2019..2021\", expected host, domain"},
      {"domain", "expected a value after domain"},
      {"domain *.news.test", "found \"*.news.test\", expected the name"},
      {"domain www.news.test", "expected a domain without www."},
      {"domain http://news.test/", "expected the name of a host"},
      {"domain a.test b.test", "found \"b.test\", expected host, domain"},
      {"domain a.test host b.test", "expected one host or domain"},
      {"time 2019 2020", "expected one time"},
      {"domain a.test 2021..2019", "does not end before it begins"},
      {"domain a.test ..", "a time before or after the dots"},
      {"time 2019-02-30", "found \"2019-02-30\", expected a time such as"},
      {"time 20190230", "found \"20190230\", expected a time"},
      {"time 2019-1", "found \"2019-1\", expected a time"},
      {"time 201", "found \"201\", expected a time"},
      {"time yesterday", "found \"yesterday\", expected a time"},
      {"status 40", "found \"40\", expected an HTTP status"},
      {"status x04", "found \"x04\", expected an HTTP status"},
      {"status 4x4", "found \"4x4\", expected an HTTP status"},
      {"digest abc", "found \"abc\", expected a digest"}};
  for (const auto& [rule, message] : examples) {
    EXPECT_THAT(
        FilterOfShortRule(rule),
        FailsWith(absl::StatusCode::kInvalidArgument, HasSubstr(message)))
        << rule;
  }
}

// Days of a period, compared as numbers.
TEST(ShortRuleTest, PeriodsHaveBothEnds) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 500; ++i) {
    const auto number = [&] {
      const int year = 2018 + static_cast<int>(random() % 4);
      const int month = 1 + static_cast<int>(random() % 12);
      const int day = 1 + static_cast<int>(random() % 28);
      return year * 10000 + month * 100 + day;
    };
    const auto [from, to] = std::minmax({number(), number()});
    const int day = number();
    // A shorter one names more.
    const int digits = 4 + 2 * static_cast<int>(random() % 3);
    const auto text = [&](int date) {
      return absl::StrFormat("%08d", date)
          .substr(0, static_cast<size_t>(digits));
    };
    const int unit = digits == 4 ? 10000 : digits == 6 ? 100 : 1;
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const std::string filter,
        FilterOfShortRule(absl::StrCat("time ", text(from), "..", text(to))));
    const bool expected = day / unit >= from / unit && day / unit <= to / unit;
    const FieldTime time = *ParseFieldTime(
        absl::StrFormat("%04d-%02d-%02dT23:59:59.999Z", day / 10000,
                        day / 100 % 100, day % 100));
    EXPECT_EQ(Filter::Parse(filter)->Matches({FieldView(time)}), expected)
        << filter << " " << day;
  }
}

}  // namespace
}  // namespace quire
