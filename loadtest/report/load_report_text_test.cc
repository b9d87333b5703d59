// SPDX-License-Identifier: Apache-2.0
#include "loadtest/report/load_report_text.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(LoadReportTextTest, DescribesTheLoad) {
  LoadOptions options;
  EXPECT_EQ(DescribeLoad(options),
            "random, ranges of 16,384 bytes, uniform, closed loop of 64 in "
            "flight, seed 1");
  options.mode = LoadMode::kBatch;
  options.what = LoadKind::kDocuments;
  options.distribution = LoadDistribution::kZipf;
  options.requests_per_second = 500;
  EXPECT_EQ(DescribeLoad(options),
            "batch, documents, zipf 0.99, open loop of 500/s, poisson, at most "
            "1 stream of 10,000, seed 1");
  options = {};
  options.mode = LoadMode::kFull;
  EXPECT_EQ(DescribeLoad(options),
            "full, the whole text, closed loop of 1 stream, seed 1");
}

TEST(LoadReportTextTest, WarnsOfWhatMakesFiguresDoubtful) {
  LoadReport report;
  report.is_compared = true;
  report.request_count = 1000;
  report.late_count = 10;
  EXPECT_THAT(CaveatsOf({}, report), IsEmpty());
  report.late_count = 11;
  EXPECT_THAT(CaveatsOf({}, report),
              ElementsAre(HasSubstr("could not keep up")));
  report.late_count = 0;
  report.unstarted_count = 5;
  EXPECT_THAT(CaveatsOf({}, report), IsEmpty());
  report.held_count = 5;
  EXPECT_THAT(CaveatsOf({}, report), ElementsAre(HasSubstr("5 arrivals")));
  report.unstarted_count = 0;
  report.is_compared = false;
  report.end = LoadEnd::kInterrupt;
  EXPECT_THAT(CaveatsOf({}, report),
              ElementsAre(HasSubstr("not compared"), HasSubstr("interrupted")));
}

TEST(LoadReportTextTest, SaysWhichLatenciesAreLowerBounds) {
  LoadReport report;
  report.is_compared = true;
  report.request_count = report.right_count = 1;
  report.latency.Add(2'000);
  report.latency.Add(1'500, 3);
  report.unanswered_count = report.lower_bound_count = 3;
  report.lower_bound_max_us = 1'500;
  std::string text = RenderReportText({}, report);
  EXPECT_THAT(text, HasSubstr("  unanswered 3 when the run ended\n"));
  EXPECT_THAT(text, HasSubstr("longest 2.000\n"));
  EXPECT_THAT(text, HasSubstr("3 latencies are lower bounds"));
  report.latency.Add(4'000);
  report.lower_bound_max_us = 4'000;
  EXPECT_THAT(RenderReportText({}, report),
              HasSubstr("longest at least 4.000\n"));
}

TEST(LoadReportTextTest, SaysThatNothingWasAnswered) {
  LoadReport report;
  report.is_compared = true;
  report.end = LoadEnd::kSilence;
  EXPECT_THAT(CaveatsOf({}, report),
              ElementsAre(HasSubstr("sent nothing for 30s"),
                          HasSubstr("No request was answered")));
}

TEST(LoadReportTextTest, ShowsCountsLatencyAndOwnTime) {
  LoadReport report;
  report.request_count = report.right_count = 3;
  report.errors["INTERNAL"] = 0;
  report.elapsed_seconds = 2;
  report.own_cpu_seconds = 0.3;
  report.latency.Add(1500);
  const std::string text = RenderReportText({}, report);
  EXPECT_THAT(text, HasSubstr("3 requests: random"));
  EXPECT_THAT(text, HasSubstr("  right      3 of 3\n"));
  EXPECT_THAT(text, HasSubstr("p99.99 1.500"));
  EXPECT_THAT(text, Not(HasSubstr("arrivals")));
  EXPECT_THAT(text, HasSubstr("0.30 s, 100000 us per request"));
}

}  // namespace
}  // namespace quire
