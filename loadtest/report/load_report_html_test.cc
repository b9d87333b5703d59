// SPDX-License-Identifier: Apache-2.0
#include "loadtest/report/load_report_html.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "loadtest/report/load_report_plots.h"

namespace quire {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

LoadReport SomeReport() {
  LoadReport report;
  for (uint64_t i = 1; i <= 1000; ++i) {
    report.latency.Add(i * 10);
    report.timeline.Add(i * 1'500'000, i * 10, 1000);
  }
  report.request_count = report.right_count = 1000;
  report.text_bytes = 1'000'000;
  report.elapsed_seconds = 1.5;
  report.is_compared = true;
  return report;
}

TEST(LoadReportHtmlTest, IsOnePageThatNeedsNoNetwork) {
  const std::string html = RenderReportHtml({}, SomeReport(), "localhost:7420");
  EXPECT_THAT(html, HasSubstr("<!DOCTYPE html>"));
  EXPECT_THAT(html, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_THAT(html, HasSubstr("localhost:7420"));
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_THAT(html, Not(HasSubstr("src=")));
  EXPECT_THAT(html, Not(HasSubstr("href=")));
  EXPECT_THAT(html, Not(HasSubstr("class=\"warn\"")));
  size_t svg_count = 0;
  for (size_t at = html.find("<svg"); at != std::string::npos;
       at = html.find("<svg", at + 1)) {
    ++svg_count;
  }
  EXPECT_EQ(svg_count, 5u);
}

TEST(LoadReportHtmlTest, EscapesAllThatComesFromOutside) {
  LoadReport report = SomeReport();
  const std::string evil = "</td><script>alert(1)</script>\"'&\xFF";
  LoadOptions options;
  options.archive = evil;
  report.faults = {evil};
  report.errors[evil] = 1;
  report.archive.set_codec("<b>");
  report.archive.set_uuid("<i>");
  report.server_metrics[evil] = 1;
  const std::string html = RenderReportHtml(options, report, evil);
  for (const char* raw : {"<script", "<b>\"", "<i>", "\xFF", "</td></td>"}) {
    EXPECT_THAT(html, Not(HasSubstr(raw)));
  }
}

TEST(LoadReportHtmlTest, HasNoPlotsOfNothing) {
  const std::string html = RenderReportHtml({}, {}, "");
  EXPECT_THAT(html, Not(HasSubstr("<svg")));
  EXPECT_THAT(html, HasSubstr("No request was answered"));
}

TEST(LoadReportPlotsTest, PercentilesRiseByNines) {
  const Plot plot = PercentilePlot(SomeReport());
  ASSERT_EQ(plot.lines.size(), 1u);
  const auto& points = plot.lines[0].points;
  for (size_t i = 1; i < points.size(); ++i) {
    EXPECT_GE(points[i].first, points[i - 1].first);
    EXPECT_GE(points[i].second, points[i - 1].second);
  }
  // 10 ms are the longest; of 1000 answers three nines are known, and a bit.
  EXPECT_NEAR(points.back().second, 1, 1e-9);
  EXPECT_GT(plot.x.high, 3);
  EXPECT_LT(plot.x.high, 4);
  EXPECT_EQ(plot.x.ticks.back().label, "99.9");
  EXPECT_LE(plot.y.low, points.front().second);
  EXPECT_GE(plot.y.high, points.back().second);
}

TEST(LoadReportPlotsTest, TheHistogramHoldsAllAnswers) {
  const Plot plot = HistogramPlot(SomeReport());
  double sum = 0;
  for (const PlotBar& bar : plot.bars) {
    EXPECT_LT(bar.from, bar.to);
    EXPECT_GE(bar.from, plot.x.low);
    EXPECT_LE(bar.to, plot.x.high);
    EXPECT_LE(bar.height, plot.y.high);
    sum += bar.height;
  }
  EXPECT_EQ(sum, 1000);
}

TEST(LoadReportPlotsTest, RatesOverTimeAreOfTheirPartsOfASecond) {
  const LoadReport report = SomeReport();
  const Plot requests = RequestTimePlot(report);
  ASSERT_EQ(requests.lines[0].points.size(), 16u);
  // An answer each 1.5 ms.
  EXPECT_NEAR(requests.lines[0].points[3].second, 667, 10);
  EXPECT_NEAR(TextTimePlot(report).lines[0].points[3].second, 0.667, 0.01);
  const Plot latency = LatencyTimePlot(report);
  ASSERT_EQ(latency.lines.size(), 2u);
  EXPECT_LT(latency.lines[0].points[3].second,
            latency.lines[1].points[3].second);
}

// A run of one answer, in no time at all, is no reason to divide by zero.
TEST(LoadReportPlotsTest, OneAnswerIsEnough) {
  LoadReport report;
  report.latency.Add(0);
  report.timeline.Add(0, 0, 0);
  report.request_count = report.right_count = 1;
  const std::string html = RenderReportHtml({}, report, "");
  EXPECT_THAT(html, Not(HasSubstr("nan")));
  EXPECT_THAT(html, Not(HasSubstr("inf\"")));
}

}  // namespace
}  // namespace quire
