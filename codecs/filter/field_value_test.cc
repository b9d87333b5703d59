// SPDX-License-Identifier: Apache-2.0
#include "codecs/filter/field_value.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
constexpr int64_t kSmallest = std::numeric_limits<int64_t>::min();

TEST(FieldValueTest, TypesHaveNames) {
  const std::vector<std::pair<FieldValue, std::string>> values = {
      {FieldValue(), "null"},  {std::string("a"), "string"},
      {int64_t{1}, "integer"}, {1.0, "float"},
      {true, "boolean"},       {FieldTime{1}, "time"}};
  for (const auto& [value, name] : values) {
    const FieldType type = TypeOf(ViewOf(value));
    EXPECT_EQ(FieldTypeName(type), name);
    EXPECT_EQ(ValueOf(ViewOf(value)), value);
    if (type == FieldType::kNull) {
      EXPECT_FALSE(ParseFieldType(name).has_value());
    } else {
      EXPECT_EQ(ParseFieldType(name), type);
    }
  }
  EXPECT_FALSE(ParseFieldType("text").has_value());
  EXPECT_FALSE(ParseFieldType("").has_value());
}

TEST(FieldValueTest, NamesAreWords) {
  for (const char* name : {"lang", "_x", "a.b.c", "Url2", "my_time", "typed"}) {
    QUIRE_EXPECT_OK(CheckFieldName(name));
  }
  QUIRE_EXPECT_OK(CheckFieldName(std::string(64, 'a')));
  for (const std::string& name :
       {std::string(), std::string(65, 'a'), std::string("1a"),
        std::string(".a"), std::string("a-b"), std::string("a b"),
        std::string("\xc3\xa4"), std::string("a\0b", 3)}) {
    EXPECT_THAT(CheckFieldName(name),
                FailsWith(absl::StatusCode::kInvalidArgument,
                          HasSubstr("such as lang; got ")));
  }
  for (const char* name :
       {"id", "ordinal", "size", "time", "type", "record_type", "and", "OR",
        "Not", "in", "is", "prefix", "null", "true", "false", "Time"}) {
    EXPECT_THAT(CheckFieldName(name),
                FailsWith(absl::StatusCode::kInvalidArgument,
                          HasSubstr("must not be ")));
  }
}

// All of an ascending list, against each other.
void ExpectAscending(const std::vector<FieldView>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    for (size_t j = 0; j < values.size(); ++j) {
      const auto order = CompareFields(values[i], values[j]);
      ASSERT_TRUE(order.has_value());
      EXPECT_TRUE(*order == (i <=> j))
          << FormatField(values[i]) << " and " << FormatField(values[j]);
    }
  }
}

TEST(FieldValueTest, ComparesExactly) {
  constexpr double kPow63 = 9223372036854775808.0;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  ExpectAscending({absl::string_view(""), absl::string_view("\0", 1),
                   absl::string_view("a"), absl::string_view("aa"),
                   absl::string_view("b"), absl::string_view("\x80"),
                   absl::string_view("\xff")});
  ExpectAscending({false, true});
  ExpectAscending(
      {FieldTime{kSmallest}, FieldTime{-1}, FieldTime{0}, FieldTime{kLargest}});
  ExpectAscending({-kInfinity, std::nextafter(-kPow63, -kInfinity), kSmallest,
                   kSmallest + 1, -1.5, int64_t{-1}, -0.5, int64_t{0}, 0.5,
                   int64_t{1}, 1.5, int64_t{9007199254740992},
                   int64_t{9007199254740993}, 9007199254740994.0, kLargest - 1,
                   kLargest, kPow63, kInfinity});
  EXPECT_TRUE(CompareFields(kSmallest, -kPow63) ==
              std::weak_ordering::equivalent);
  EXPECT_TRUE(CompareFields(-0.0, 0.0) == std::weak_ordering::equivalent);
  EXPECT_TRUE(CompareFields(-0.0, int64_t{0}) ==
              std::weak_ordering::equivalent);
}

TEST(FieldValueTest, OtherTypesAreNotComparable) {
  const std::vector<FieldView> values = {FieldView(),  absl::string_view("1"),
                                         int64_t{1},   true,
                                         FieldTime{1}, std::nan("")};
  for (size_t i = 0; i < values.size(); ++i) {
    for (size_t j = 0; j < values.size(); ++j) {
      const bool is_itself = i == j && i != 0 && i + 1 != values.size();
      EXPECT_EQ(CompareFields(values[i], values[j]).has_value(), is_itself)
          << i << ", " << j;
    }
  }
}

TEST(FieldValueTest, TimesRoundTrip) {
  const std::vector<std::pair<std::string, std::string>> texts = {
      {"1970-01-01", "1970-01-01T00:00:00Z"},
      {"2024-02-29", "2024-02-29T00:00:00Z"},
      {"0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"},
      {"9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"},
      {"2024-01-31T12:30:45.5Z", "2024-01-31T12:30:45.500Z"},
      {"2024-01-31t12:30:45.000001z", "2024-01-31T12:30:45.000001Z"},
      {"2024-01-31 12:30:45.123456789Z", "2024-01-31T12:30:45.123456Z"},
      {"2024-01-31T01:30:45+02:00", "2024-01-30T23:30:45Z"},
      {"2024-12-31T23:30:00-00:45", "2025-01-01T00:15:00Z"},
      {"1969-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999999Z"}};
  for (const auto& [text, expected] : texts) {
    const std::optional<FieldTime> time = ParseFieldTime(text);
    ASSERT_TRUE(time.has_value()) << text;
    EXPECT_EQ(FormatFieldTime(*time), expected);
    EXPECT_EQ(ParseFieldTime(expected), time);
  }
  EXPECT_EQ(ParseFieldTime("1970-01-01T00:00:01.5Z")->us, 1'500'000);
  EXPECT_EQ(ParseFieldTime("1969-12-31T23:59:59.5Z")->us, -500'000);
  // One past the years that have four digits.
  EXPECT_EQ(FormatFieldTime(FieldTime{253402300800000000}),
            "253402300800000000");
  EXPECT_EQ(FormatFieldTime(FieldTime{kSmallest}), "-9223372036854775808");
}

TEST(FieldValueTest, DaysAscendWithoutGaps) {
  FieldTime time = *ParseFieldTime("1896-01-01");
  std::string last;
  int64_t leap_day_count = 0;
  for (; time.us <= ParseFieldTime("2104-12-31")->us; time.us += 86400000000) {
    const std::string text = FormatFieldTime(time);
    ASSERT_LT(last, text);
    ASSERT_EQ(ParseFieldTime(text), time) << text;
    leap_day_count += text.substr(4, 6) == "-02-29" ? 1 : 0;
    last = text;
  }
  EXPECT_EQ(last, "2104-12-31T00:00:00Z");
  // Every fourth year, except for 1900 and 2100.
  EXPECT_EQ(leap_day_count, 51);
  EXPECT_EQ(ParseFieldTime("2000-03-01")->us, 951868800000000);
}

TEST(FieldValueTest, OtherTextIsNotATime) {
  for (const char* text : {"",
                           "2024",
                           "2024-01",
                           "2024-1-1",
                           "2024-02-30",
                           "2023-02-29",
                           "2024-13-01",
                           "2024-00-01",
                           "2024-01-00",
                           "0000-01-01",
                           "2024-01-01T",
                           "2024-01-01T12:30",
                           "2024-01-01T12:30:45",
                           "2024-01-01T24:00:00Z",
                           "2024-01-01T12:60:00Z",
                           "2024-01-01T12:30:60Z",
                           "2024-01-01T12:30:45.Z",
                           "2024-01-01T12:30:45.1234567890Z",
                           "2024-01-01T12:30:45+0200",
                           "2024-01-01T12:30:45+24:00",
                           "2024-01-01T12:30:45+02:60",
                           "2024-01-01T12:30:45Zx",
                           "2024-01-01Z",
                           " 2024-01-01",
                           "-024-01-01",
                           "20240101",
                           "2024-01-01T12:30:45 Z"}) {
    EXPECT_FALSE(ParseFieldTime(text).has_value()) << text;
  }
}

TEST(FieldValueTest, ValuesPrintAsFiltersWriteThem) {
  EXPECT_EQ(FormatField(FieldView()), "null");
  EXPECT_EQ(FormatField(absl::string_view("a\"\\\n\x7f\xc3\xa4\xff", 8)),
            R"("a\"\\\x0a\x7f)"
            "\xc3\xa4"
            R"(\xff")");
  EXPECT_EQ(FormatField(kSmallest), "-9223372036854775808");
  EXPECT_EQ(FormatField(1.0), "1.0");
  EXPECT_EQ(FormatField(0.1), "0.1");
  EXPECT_EQ(FormatField(-1.5e300), "-1.5e+300");
  EXPECT_EQ(FormatField(false), "false");
  EXPECT_EQ(FormatField(FieldTime{0}), "1970-01-01T00:00:00Z");
}

}  // namespace
}  // namespace quire
