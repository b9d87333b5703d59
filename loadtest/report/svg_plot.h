// SPDX-License-Identifier: Apache-2.0
//
// Plots as inline SVG, in the colours of the page that they are put in.
#ifndef QUIRE_LOADTEST_REPORT_SVG_PLOT_H_
#define QUIRE_LOADTEST_REPORT_SVG_PLOT_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace quire {

struct PlotTick {
  // On the axis' scale.
  double at = 0;
  std::string label = {};
};

// Linear. A logarithmic axis has the logarithms as its values, and ticks that
// say what they stand for.
struct PlotAxis {
  // With the unit.
  std::string label = {};
  // What is outside of them is drawn at the border. REQUIRES: low < high.
  double low = 0;
  double high = 1;
  std::vector<PlotTick> ticks = {};
};

struct PlotLine {
  // For the legend.
  std::string name = {};
  // Ascending in x.
  std::vector<std::pair<double, double>> points = {};
};

// From the x axis up.
struct PlotBar {
  double from = 0;
  double to = 0;
  double height = 0;
};

struct Plot {
  std::string title = {};
  PlotAxis x = {};
  PlotAxis y = {};
  // Line i has the CSS class "line i"; there is a legend if there are several.
  std::vector<PlotLine> lines = {};
  std::vector<PlotBar> bars = {};
};

// One <svg> element; well-formed whatever the texts are. Values that are not
// finite are left out. Thread-safe.
std::string RenderSvg(const Plot& plot);

// From 0 to at least `most` in four to ten steps of 1, 2 or 5 times a power of
// ten, as ticks; the last one is at the axis' end. Thread-safe.
std::vector<PlotTick> LinearTicks(double most);

// Of an axis of logarithms to base 10 from `low` to `high`, values of 1, 2 and
// 5 times each power of ten; powers alone where there are many. Thread-safe.
std::vector<PlotTick> LogTicks(double low, double high);

// For HTML and SVG, in text and in quoted attributes: escaped, and in UTF-8
// whatever the bytes are. Thread-safe.
std::string EscapeHtml(absl::string_view bytes);

}  // namespace quire

#endif  // QUIRE_LOADTEST_REPORT_SVG_PLOT_H_
