// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_LOADTEST_REPORT_LOAD_REPORT_PLOTS_H_
#define QUIRE_LOADTEST_REPORT_LOAD_REPORT_PLOTS_H_

#include "loadtest/report/load_report.h"
#include "loadtest/report/svg_plot.h"

namespace quire {

// What a report of a load run draws. Thread-safe, all of them.
// REQUIRES: the report has right answers.

// Latency below which so many answers lie; the axis gives every further nine of
// the percentage the same room, as that of HdrHistogram does.
Plot PercentilePlot(const LoadReport& report);

// How many answers took so long, eight bars for each doubling.
Plot HistogramPlot(const LoadReport& report);

// Latency over time: the median and the 99th percentile.
Plot LatencyTimePlot(const LoadReport& report);

// Requests a second over time.
Plot RequestTimePlot(const LoadReport& report);

// Decoded text a second over time.
Plot TextTimePlot(const LoadReport& report);

}  // namespace quire

#endif  // QUIRE_LOADTEST_REPORT_LOAD_REPORT_PLOTS_H_
