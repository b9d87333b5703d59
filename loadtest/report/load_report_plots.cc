// SPDX-License-Identifier: Apache-2.0
#include "loadtest/report/load_report_plots.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace quire {
namespace {

constexpr double kBarsPerDoubling = 8;

// On a logarithmic axis of milliseconds; what took no time counts as the least
// that is measured.
double LogMs(uint64_t us) {
  return std::log10(static_cast<double>(std::max<uint64_t>(us, 1)) / 1000);
}

// From the power of 1, 2 or 5 below `low` to the one above `high`.
PlotAxis LogAxis(std::string label, double low, double high) {
  PlotAxis axis{.label = std::move(label), .low = low, .high = high};
  const std::vector<PlotTick> around = LogTicks(low - 1, high + 1);
  for (const PlotTick& tick : around) {
    if (tick.at <= low) {
      axis.low = tick.at;
    }
  }
  for (auto tick = around.rbegin(); tick != around.rend(); ++tick) {
    if (tick->at >= high && tick->at > axis.low) {
      axis.high = tick->at;
    }
  }
  axis.ticks = LogTicks(axis.low, axis.high);
  return axis;
}

PlotAxis LinearAxis(std::string label, double most) {
  PlotAxis axis{.label = std::move(label)};
  axis.ticks = LinearTicks(most);
  axis.high = axis.ticks.back().at;
  return axis;
}

// The run's time, whose end is where the axis ends.
PlotAxis TimeAxis(const LoadReport& report) {
  PlotAxis axis = LinearAxis("time, s", report.elapsed_seconds);
  axis.high = std::max(report.elapsed_seconds, 1e-3);
  axis.ticks.erase(std::remove_if(axis.ticks.begin(), axis.ticks.end(),
                                  [&axis](const PlotTick& tick) {
                                    return tick.at > axis.high;
                                  }),
                   axis.ticks.end());
  return axis;
}

// In the middle of each part of the timeline.
double TimeOf(const LoadReport& report, size_t part) {
  const double begin =
      static_cast<double>(part) * report.timeline.part_seconds();
  return begin + report.timeline.SecondsOf(part, report.elapsed_seconds) / 2;
}

// A rate over time; `amount_of` gives that of a part of the timeline.
template <typename AmountOf>
Plot RatePlot(const LoadReport& report, std::string title, std::string label,
              const AmountOf& amount_of) {
  PlotLine line;
  double most = 0;
  for (size_t i = 0; i < report.timeline.parts().size(); ++i) {
    const double rate = amount_of(report.timeline.parts()[i]) /
                        report.timeline.SecondsOf(i, report.elapsed_seconds);
    most = std::max(most, rate);
    line.points.emplace_back(TimeOf(report, i), rate);
  }
  return {.title = std::move(title),
          .x = TimeAxis(report),
          .y = LinearAxis(std::move(label), most),
          .lines = {std::move(line)}};
}

}  // namespace

Plot PercentilePlot(const LoadReport& report) {
  const auto total = static_cast<double>(report.latency.count());
  PlotLine line;
  uint64_t seen = 0;
  double before = 0;
  for (const LatencyHistogram::Bucket& bucket : report.latency.Buckets()) {
    const double y = LogMs(bucket.upper_bound_us);
    line.points.emplace_back(before, y);
    seen += bucket.count;
    // The last answer of all has no place on the axis but its end.
    const double above = std::max(total - static_cast<double>(seen), 0.5);
    before = -std::log10(above / total);
    line.points.emplace_back(before, y);
  }
  Plot plot{.title = "Latency by percentile",
            .x = {.label = "answers, %", .high = std::max(1.0, before)},
            .y = LogAxis("latency, ms", line.points.front().second,
                         line.points.back().second)};
  plot.x.ticks = {{0, "0"}, {-std::log10(0.5), "50"}};
  std::string nines = "90";
  for (double at = 1; at <= plot.x.high; ++at) {
    plot.x.ticks.push_back({at, nines});
    nines = at == 1 ? "99" : absl::StrCat(nines, at == 2 ? ".9" : "9");
  }
  plot.lines = {std::move(line)};
  return plot;
}

Plot HistogramPlot(const LoadReport& report) {
  // By the logarithm to base 2, in steps of a bar.
  std::map<int64_t, uint64_t> counts;
  for (const LatencyHistogram::Bucket& bucket : report.latency.Buckets()) {
    const auto us =
        static_cast<double>(std::max<uint64_t>(bucket.upper_bound_us, 1));
    counts[std::llround(std::floor(std::log2(us) * kBarsPerDoubling))] +=
        bucket.count;
  }
  Plot plot{.title = "Latency histogram"};
  uint64_t most = 0;
  for (const auto& [step, count] : counts) {
    const auto from = static_cast<double>(step) / kBarsPerDoubling;
    plot.bars.push_back(
        {.from = from * std::log10(2.0) - 3,
         .to = (from + 1 / kBarsPerDoubling) * std::log10(2.0) - 3,
         .height = static_cast<double>(count)});
    most = std::max(most, count);
  }
  plot.x = LogAxis("latency, ms", plot.bars.front().from, plot.bars.back().to);
  plot.y = LinearAxis("answers", static_cast<double>(most));
  return plot;
}

Plot LatencyTimePlot(const LoadReport& report) {
  PlotLine median{.name = "p50"};
  PlotLine high{.name = "p99"};
  double least = LogMs(report.latency.max_us());
  double most = least - 1;
  for (size_t i = 0; i < report.timeline.parts().size(); ++i) {
    const LatencyHistogram& latency = report.timeline.parts()[i].latency;
    if (latency.count() > 0) {
      const double x = TimeOf(report, i);
      median.points.emplace_back(x, LogMs(latency.PercentileUs(50)));
      high.points.emplace_back(x, LogMs(latency.PercentileUs(99)));
      least = std::min(least, median.points.back().second);
      most = std::max(most, high.points.back().second);
    }
  }
  return {.title = "Latency over time",
          .x = TimeAxis(report),
          .y = LogAxis("latency, ms", least, most),
          .lines = {std::move(median), std::move(high)}};
}

Plot RequestTimePlot(const LoadReport& report) {
  return RatePlot(report, "Answers over time", "answers a second",
                  [](const LoadTimeline::Part& part) {
                    return static_cast<double>(part.request_count);
                  });
}

Plot TextTimePlot(const LoadReport& report) {
  return RatePlot(report, "Text over time", "text, MB/s",
                  [](const LoadTimeline::Part& part) {
                    return static_cast<double>(part.text_bytes) / 1e6;
                  });
}

}  // namespace quire
