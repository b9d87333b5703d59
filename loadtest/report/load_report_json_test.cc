// SPDX-License-Identifier: Apache-2.0
#include "loadtest/report/load_report_json.h"

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
    report.timeline.Add(i * 50'000'000, i * 1000, 500);
  }
  return report;
}

Json Parsed(const LoadOptions& options, const LoadReport& report) {
  return Json::parse(RenderReportJson(options, report, "h:1"));
}

TEST(LoadReportJsonTest, HasTheFieldsThatOthersRelyOn) {
  const Json json = Parsed({}, SomeReport());
  // The first member of the ordered object identifies the format.
  EXPECT_EQ(json.begin().key(), "format");
  for (const auto& [pointer, value] : std::vector<std::pair<const char*, Json>>{
           {"/format", 3},
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
           {"/wire_bytes_per_second", 500},
           {"/answers/fsst", 0},
           {"/latency_ms/mean", 4},
           {"/latency_ms/max", 7},
           {"/latency_ms/lower_bounds", 2},
           {"/latency_ms/lower_bound_max", 6.5},
           {"/latency_histogram/0/count", 1},
           {"/timeline/0",
            {{"second", 0},
             {"requests", 1},
             {"text_bytes", 500},
             {"p50_ms", 1},
             {"p99_ms", 1}}}}) {
    const Json::json_pointer where(pointer);
    ASSERT_TRUE(json.contains(where)) << pointer;
    EXPECT_EQ(json[where], value) << pointer;
  }
  for (const char* name : {"p50", "p90", "p99", "p999", "p9999"}) {
    EXPECT_TRUE(json["latency_ms"][name].is_number()) << name;
  }
  EXPECT_THAT(json["load"].get<std::string>(), HasSubstr("random, ranges"));
  EXPECT_THAT(json["caveats"][0].get<std::string>(),
              HasSubstr("Contents were not compared"));
  EXPECT_EQ(json["faults"][0], "document 'a\"<b>\xEF\xBF\xBD': what");
}

TEST(LoadReportJsonTest, WritesTimesAsTheyAreRead) {
  EXPECT_THAT(RenderReportJson({}, SomeReport(), "h:1"),
              HasSubstr("\"second\": 0.3,"));
}

TEST(LoadReportJsonTest, WritesNullWhereThereIsNoLimit) {
  LoadOptions options;
  options.request_count.reset();
  options.duration.reset();
  const Json closed = Parsed(options, {});
  for (const char* name :
       {"requests", "duration_seconds", "rate", "arrivals"}) {
    EXPECT_TRUE(closed["options"].contains(name)) << name;
    EXPECT_TRUE(closed["options"][name].is_null()) << name;
  }
  EXPECT_EQ(closed["requests_per_second"], 0);
  for (const char* name : {"caveats", "faults", "timeline"}) {
    EXPECT_TRUE(closed[name].is_array()) << name;
  }
  EXPECT_EQ(closed["errors_by_code"], Json::object());
  options.requests_per_second = 2.5;
  const Json open = Parsed(options, {});
  EXPECT_EQ(open["options"]["rate"], 2.5);
  EXPECT_EQ(open["options"]["arrivals"], "poisson");
}

}  // namespace
}  // namespace quire
