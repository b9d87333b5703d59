// SPDX-License-Identifier: Apache-2.0
#include "loadtest/report/load_report.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "codecs/base/json_text.h"

#include "nlohmann/json.hpp"

namespace quire {
namespace {

using ::testing::HasSubstr;

LoadReport SomeReport() {
  LoadReport report;
  report.archive.set_codec("rlz");
  report.request_count = 10;
  report.right_count = 7;
  report.wrong_count = 1;
  report.errors["INTERNAL"] = 2;
  report.faults = {"document 'a\"<b>\xFF': what"};
  report.text_bytes = 4000;
  report.wire_bytes = 1000;
  report.elapsed_seconds = 2;
  report.unanswered_count = report.lower_bound_count = 2;
  report.lower_bound_max_us = 6'500;
  for (uint64_t i = 1; i <= 7; ++i) {
    report.latency.Add(i * 1000);
  }
  return report;
}

Json Parsed(const LoadOptions& options, const LoadReport& report) {
  return Json::parse(RenderReportJson(options, report, "h:1"));
}

TEST(LoadReportTest, HasTheFieldsThatOthersRelyOn) {
  const Json json = Parsed({}, SomeReport());
  // The first member of the ordered object identifies the format.
  EXPECT_EQ(json.begin().key(), "format");
  for (const auto& [pointer, value] : std::vector<std::pair<const char*, Json>>{
           {"/format", 4},
           {"/options/deadline_seconds", 30},
           {"/options/encoding", "identity"},
           {"/address", "h:1"},
           {"/server/codec", "rlz"},
           {"/requests", 10},
           {"/right", 7},
           {"/wrong", 1},
           {"/errors", 2},
           {"/errors_by_code/INTERNAL", 2},
           {"/unanswered", 2},
           {"/keeps_up", true},
           {"/seconds", 2},
           {"/requests_per_second", 5},
           {"/text_bytes_per_second", 2000},
           {"/wire_bytes", 1000},
           {"/latency_ms/mean", 4},
           {"/latency_ms/max", 7},
           {"/latency_ms/lower_bounds", 2},
           {"/latency_ms/lower_bound_max", 6.5}}) {
    const Json::json_pointer where(pointer);
    ASSERT_TRUE(json.contains(where)) << pointer;
    EXPECT_EQ(json[where], value) << pointer;
  }
  for (const char* name : {"p50", "p90", "p99", "p999", "p9999"}) {
    EXPECT_TRUE(json["latency_ms"][name].is_number()) << name;
  }
  EXPECT_EQ(json["faults"][0], "document 'a\"<b>\xEF\xBF\xBD': what");
}

TEST(LoadReportTest, WritesNullWhereThereIsNoLimit) {
  LoadOptions options;
  options.request_count.reset();
  options.duration.reset();
  const Json closed = Parsed(options, {});
  for (const char* name : {"requests", "duration_seconds", "rate"}) {
    EXPECT_TRUE(closed["options"].contains(name)) << name;
    EXPECT_TRUE(closed["options"][name].is_null()) << name;
  }
  EXPECT_EQ(closed["requests_per_second"], 0);
  EXPECT_TRUE(closed["faults"].is_array());
  EXPECT_EQ(closed["errors_by_code"], Json::object());
  options.requests_per_second = 2.5;
  EXPECT_EQ(Parsed(options, {})["options"]["rate"], 2.5);
}

TEST(LoadReportTest, TheTextHasCountsRatesAndLatencies) {
  EXPECT_EQ(RenderReportText({}, SomeReport()),
            R"(10 requests: 7 right, 1 wrong, 2 errors, 0 retries
  2 INTERNAL
  rate     5/s, 0.0 MB/s of text, 0.0 MB/s on the wire, 2.00 s
  latency  mean 4.000 ms, p50 4.031, p90 7.000, p99 7.000, p99.9 7.000, longest 7.000
  own CPU  0.00 s
  Contents were not compared with a source.
  Latencies that are lower bounds, of abandoned requests: 2
)");
}

TEST(LoadReportTest, TheTextWarnsOfWhatMakesFiguresDoubtful) {
  LoadReport report;
  report.is_compared = true;
  report.request_count = 1000;
  const auto warnings = [&report] {
    const std::string text = RenderReportText({}, report);
    return text.substr(text.find('\n', text.find("own CPU")) + 1);
  };
  report.late_count = 10;
  EXPECT_EQ(warnings(), "");
  report.late_count = 11;
  EXPECT_THAT(warnings(), HasSubstr("a millisecond late: 11\n"));
  report.late_count = 0;
  report.unstarted_count = 5;
  EXPECT_EQ(warnings(), "  Arrivals that were due and never started: 5\n");
  report.unstarted_count = 0;
  report.end = LoadEnd::kInterrupt;
  EXPECT_EQ(warnings(), "  The run was interrupted.\n");
  report.end = LoadEnd::kSilence;
  EXPECT_THAT(warnings(), HasSubstr("sent nothing for 30s"));
}

}  // namespace
}  // namespace quire
