// SPDX-License-Identifier: Apache-2.0
#include "loadtest/report/load_report_json.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

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
  report.server_metrics["quire_cache_hits_total{archive=\"a\"}"] = 5;
  return report;
}

TEST(LoadReportJsonTest, HasTheFieldsThatOthersRelyOn) {
  const std::string json = RenderReportJson({}, SomeReport(), "h:1");
  for (const char* part :
       {"{\n  \"format\": 2,",
        "\n  \"options\": {\n",
        "\n  \"load\": \"random, ranges",
        "\n  \"caveats\": [\n    \"Contents were not compared",
        "\n  \"address\": \"h:1\"",
        "\n  \"requests\": 10,",
        "\n  \"right\": 7,",
        "\n  \"wrong\": 1,",
        "\n  \"errors\": 2,",
        "\n  \"seconds\": 2,",
        "\n  \"requests_per_second\": 5,",
        "\n  \"text_bytes_per_second\": 2000,",
        "\n  \"wire_bytes_per_second\": 500,",
        "\n  \"latency_ms\": {\n    \"mean\": 4,\n    \"p50\": ",
        "\"p90\": ",
        "\"p99\": ",
        "\"p999\": ",
        "\"p9999\": ",
        "\"max\": 7,\n",
        "\"lower_bounds\": 2,",
        "\"lower_bound_max\": 6.5\n",
        "\n  \"unanswered\": 2,",
        "\"deadline_seconds\": 30\n",
        "\n  \"timeline\": [\n    {\n      \"second\": 0,\n"
        "      \"requests\": 1,\n      \"text_bytes\": 500,\n"
        "      \"p50_ms\": 1,\n      \"p99_ms\": 1\n    }",
        "\"second\": 0.3,",
        "\"quire_cache_hits_total{archive=\\\"a\\\"}\": 5"}) {
    EXPECT_THAT(json, HasSubstr(part));
  }
}

TEST(LoadReportJsonTest, WritesNullWhereThereIsNoLimit) {
  LoadOptions options;
  options.request_count.reset();
  options.duration.reset();
  const std::string json = RenderReportJson(options, {}, "");
  for (const char* part : {"\"requests\": null", "\"duration_seconds\": null",
                           "\"rate\": null", "\"arrivals\": null",
                           "\"timeline\": []", "\"requests_per_second\": 0,"}) {
    EXPECT_THAT(json, HasSubstr(part));
  }
  options.requests_per_second = 2.5;
  const std::string open = RenderReportJson(options, {}, "");
  EXPECT_THAT(open, HasSubstr("\"rate\": 2.5"));
  EXPECT_THAT(open, HasSubstr("\"arrivals\": \"poisson\""));
}

}  // namespace
}  // namespace quire
