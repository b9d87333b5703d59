// SPDX-License-Identifier: Apache-2.0
#include "loadtest/requests/request_log.h"

#include <unistd.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::HasSubstr;
using Kind = LoggedRequest::Kind;

TEST(RequestLogTest, ReadsEveryKindOfLine) {
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const RequestLog log,
      RequestLog::Parse("# a log\n17\t4096\n\nid\ta b\tc\nid\t\nordinal\t9"));
  EXPECT_FALSE(log.has_times());
  ASSERT_EQ(log.size(), 4u);
  EXPECT_EQ(log[0].kind, Kind::kRange);
  EXPECT_EQ(log[0].offset, 17u);
  EXPECT_EQ(log[0].size_bytes, 4096u);
  EXPECT_EQ(log[1].kind, Kind::kId);
  EXPECT_EQ(log[1].id, "a b\tc");
  EXPECT_EQ(log[2].kind, Kind::kId);
  EXPECT_EQ(log[2].id, "");
  EXPECT_EQ(log[3].kind, Kind::kOrdinal);
  EXPECT_EQ(log[3].ordinal, 9u);
}

TEST(RequestLogTest, ReadsTimesToTheNanosecond) {
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const RequestLog log,
      RequestLog::Parse(
          "+0\t1\t2\n+0.5\tid\tx\n+0.500000001\t3\t4\n+7\t5\t6\n"));
  ASSERT_TRUE(log.has_times());
  EXPECT_EQ(log.time_ns(0), 0u);
  EXPECT_EQ(log.time_ns(1), 500'000'000u);
  EXPECT_EQ(log.time_ns(2), 500'000'001u);
  EXPECT_EQ(log.time_ns(3), 7'000'000'000u);
  EXPECT_EQ(log[1].id, "x");
}

TEST(RequestLogTest, NamesABadLineAndWhy) {
  struct Case {
    const char* text;
    const char* message;
  };

  for (const Case& bad : {
           Case{"1\t2\n1 2\n", "line 2: is not OFFSET<tab>LENGTH"},
           Case{"#\n\nx\t2\n", "line 3: 'x' is neither an offset"},
           Case{"-1\t2\n", "line 1: '-1' is neither an offset"},
           Case{"1\t+2\n", "line 1: '+2' is no length"},
           Case{"1\t2\t3\n", "line 1: '2\t3' is no length"},
           Case{"1\t18446744073709551616\n", "is no length"},
           Case{"ordinal\tx\n", "line 1: 'x' is no ordinal"},
           Case{"+1\t1\t2\n1\t2\n", "line 2: has no time"},
           Case{"1\t2\n+1\t1\t2\n", "line 2: has a time"},
           Case{"+2\t1\t2\n+1\t1\t2\n", "line 2: its time is before"},
           Case{"+1.0000000001\t1\t2\n", "line 1: the time is not"},
           Case{"+.5\t1\t2\n", "line 1: the time is not"},
           Case{"+1.\t1\t2\n", "line 1: the time is not"},
           Case{"+1e9\t1\t2\n", "line 1: the time is not"},
           Case{"+999999999\t1\t2\n", "ten years"},
           Case{"+1\n", "line 1: is not OFFSET<tab>LENGTH"},
           Case{"# nothing\n", "has no requests"},
           Case{"", "has no requests"},
       }) {
    EXPECT_THAT(
        RequestLog::Parse(bad.text),
        FailsWith(absl::StatusCode::kInvalidArgument, HasSubstr(bad.message)))
        << bad.text;
  }
}

TEST(RequestLogTest, OpensFilesAndNamesThem) {
  const std::string path =
      absl::StrCat(::testing::TempDir(), "/request_log_test.", getpid());
  EXPECT_THAT(RequestLog::Open(path), HasCode(absl::StatusCode::kNotFound));
  std::ofstream(path) << "5\t6\nid\tx\n";
  QUIRE_ASSERT_OK_AND_ASSIGN(const RequestLog log, RequestLog::Open(path));
  EXPECT_EQ(log.size(), 2u);
  std::ofstream(path) << "5\t6\nid\n";
  EXPECT_THAT(RequestLog::Open(path),
              FailsWith(absl::StatusCode::kInvalidArgument,
                        HasSubstr(absl::StrCat(path, ": line 2: "))));
  std::ofstream(path) << "#\n";
  EXPECT_THAT(RequestLog::Open(path),
              FailsWith(absl::StatusCode::kInvalidArgument, HasSubstr(path)));
  unlink(path.c_str());
}

TEST(RequestLogTest, FormatsWhatItParses) {
  const std::string text =
      "+0.000000000\t18446744073709551615\t1\n"
      "+1.000000001\tid\tx\ty\n"
      "+1.900000000\tordinal\t3\n";
  QUIRE_ASSERT_OK_AND_ASSIGN(const RequestLog log, RequestLog::Parse(text));
  std::string again;
  for (size_t i = 0; i < log.size(); ++i) {
    const uint64_t time_ns = log.time_ns(i);
    QUIRE_ASSERT_OK_AND_ASSIGN(const std::string line,
                               FormatLoggedRequest(log[i], &time_ns));
    again += line + "\n";
  }
  EXPECT_EQ(again, text);
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::string untimed,
                             FormatLoggedRequest(log[1], nullptr));
  EXPECT_EQ(untimed, "id\tx\ty");
  EXPECT_THAT(FormatLoggedRequest({.kind = Kind::kId, .id = "a\nb"}, nullptr),
              HasCode(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace quire
