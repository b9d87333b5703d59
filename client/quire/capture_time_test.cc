// SPDX-License-Identifier: Apache-2.0
#include "client/quire/capture_time.h"

#include <string>

#include "absl/time/time.h"
#include "gmock/gmock.h"

#include "testing/base/status_matchers.h"

namespace quire {
namespace {

TEST(CaptureTimeTest, IsTheEndOfThePeriod) {
  const struct {
    const char* text;
    const char* last;
  } cases[] = {{"2022", "2022-12-31T23:59:59.999Z"},
               {"2022-06", "2022-06-30T23:59:59.999Z"},
               {"2022-12", "2022-12-31T23:59:59.999Z"},
               {"2024-02", "2024-02-29T23:59:59.999Z"},
               {"2022-06-15", "2022-06-15T23:59:59.999Z"},
               {"2022-06-15T12", "2022-06-15T12:59:59.999Z"},
               {"2022-06-15T12:30Z", "2022-06-15T12:30:59.999Z"},
               {"2022-06-15 12:30", "2022-06-15T12:30:59.999Z"},
               {"2022-06-15T12:30:45Z", "2022-06-15T12:30:45.999Z"},
               {"2022-06-15t12:30:45z", "2022-06-15T12:30:45.999Z"},
               {"2022-06-15T12:30:45.2Z", "2022-06-15T12:30:45.299Z"},
               {"2022-06-15T12:30:45.27Z", "2022-06-15T12:30:45.279Z"},
               {"2022-06-15T12:30:45.123Z", "2022-06-15T12:30:45.123Z"},
               {"2022-06-15T12:30:45.123456789", "2022-06-15T12:30:45.123Z"},
               {"202206", "2022-06-30T23:59:59.999Z"},
               {"20220615", "2022-06-15T23:59:59.999Z"},
               {"2022061512", "2022-06-15T12:59:59.999Z"},
               {"20220615123045", "2022-06-15T12:30:45.999Z"},
               {"2022-06-15T14:30+02:00", "2022-06-15T12:30:59.999Z"},
               {"2022-06-15T00:30:45-12", "2022-06-15T12:30:45.999Z"},
               {"1969", "1969-12-31T23:59:59.999Z"},
               {"0001", "0001-12-31T23:59:59.999Z"},
               {"9999", "9999-12-31T23:59:59.999Z"}};

  for (const auto& [text, last] : cases) {
    absl::Time time;
    std::string error;
    ASSERT_TRUE(absl::ParseTime(absl::RFC3339_full, last, &time, &error));
    QUIRE_ASSERT_OK_AND_ASSIGN(const CapturePeriod got,
                               ParseCapturePeriod(text));
    EXPECT_EQ(got.last_ms, absl::ToUnixMillis(time)) << text;
  }
}

TEST(CaptureTimeTest, BeginsWhereItSays) {
  const struct {
    const char* text;
    int64_t first_ms;
  } cases[] = {{"1970", 0},
               {"1970-02", int64_t{31} * 86400 * 1000},
               {"1970-01-01T00:00:01Z", 1000},
               {"19700101000001", 1000},
               {"1970-01-01T00:00:01.5Z", 1500},
               {"1970-01-01T00:00:01.789Z", 1789},
               {"1970-01-01T02:00:01.5+02:00", 1500},
               {"1970-01-01T02:00:01+0200", 1000},
               {"1969-12-31T22:30:01-01:30", 1000},
               {"1970-01-01T02+02", 0},
               {"19700101020001+02", 1000},
               {"1969", -int64_t{365} * 86400 * 1000}};

  for (const auto& [text, first_ms] : cases) {
    QUIRE_ASSERT_OK_AND_ASSIGN(const CapturePeriod got,
                               ParseCapturePeriod(text));
    EXPECT_EQ(got.first_ms, first_ms) << text;
  }
}

TEST(CaptureTimeTest, RefusesWhatIsNoTime) {
  for (const char* text : {"",
                           "22",
                           "202",
                           "2022-",
                           "2022-6",
                           "2022-06-",
                           "2022-06-1",
                           "20226",
                           "2022-06-15T",
                           "2022-06-15T1",
                           "2022-06-15T12:3",
                           "2022Z",
                           "2022-06Z",
                           "2022-06-15T12:30:45.",
                           "2022-06-15T12:30:45.1234567890",
                           "2022-06-15+02:00",
                           "2022-06-15T12:30:45+",
                           "2022-06-15T12:30:45+2",
                           "2022-06-15T12:30:45+02:",
                           "2022-06-15T12:30:45+02:60",
                           "2022-06-15T12:30:45+24:00",
                           "2022-06-15T12:30:45+02:00Z",
                           "2022-06-15T12:30:45ZZ",
                           "June 2022",
                           "202206151230456",
                           "20220615123045.5",
                           "-2022",
                           "+2022",
                           " 2022",
                           "2022 ",
                           "2022-0x"}) {
    EXPECT_THAT(ParseCapturePeriod(text),
                HasCode(absl::StatusCode::kInvalidArgument))
        << text;
  }
  for (const char* text :
       {"2022-13", "2022-00", "2022-02-29", "2022-06-31", "2022-06-00",
        "2022-06-15T24", "2022-06-15T12:60", "2022-06-15T12:30:60Z"}) {
    EXPECT_THAT(ParseCapturePeriod(text),
                HasCode(absl::StatusCode::kInvalidArgument))
        << text;
    EXPECT_THAT(std::string(ParseCapturePeriod(text).status().message()),
                ::testing::StartsWith("there is no such date"));
  }
}

}  // namespace
}  // namespace quire
