// SPDX-License-Identifier: Apache-2.0
#include "loadtest/report/svg_plot.h"

#include <cctype>
#include <cmath>
#include <limits>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace quire {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Whether all elements of `xml` end in the order in which they began, and
// nothing in attributes and texts is left unescaped.
bool IsWellFormed(absl::string_view xml) {
  std::vector<std::string> open;
  while (!xml.empty()) {
    if (xml.front() != '<') {
      if (xml.front() == '>' || (xml.front() == '&' && xml.find(';') > 6)) {
        return false;
      }
      xml.remove_prefix(1);
      continue;
    }
    const size_t end = xml.find('>');
    if (end == absl::string_view::npos ||
        xml.substr(1, end - 1).find('<') != absl::string_view::npos) {
      return false;
    }
    absl::string_view tag = xml.substr(1, end - 1);
    xml.remove_prefix(end + 1);
    const bool is_end = absl::StartsWith(tag, "/");
    const bool is_empty = absl::EndsWith(tag, "/");
    tag.remove_prefix(is_end ? 1 : 0);
    const std::string name(tag.substr(0, tag.find_first_of(" /")));
    if (is_end) {
      if (open.empty() || open.back() != name) {
        return false;
      }
      open.pop_back();
    } else if (!is_empty) {
      open.push_back(name);
    }
  }
  return open.empty();
}

Plot SomePlot() {
  Plot plot{.title = "t", .x = {.label = "x, s"}, .y = {.label = "y, ms"}};
  plot.x.high = 10;
  plot.x.ticks = LinearTicks(10);
  plot.y.high = 2;
  plot.y.ticks = LogTicks(0, 2);
  plot.lines = {{"a", {{0, 0}, {5, 1}, {10, 2}}}, {"b", {{0, 1}}}};
  plot.bars = {{0, 1, 1}, {1, 2, 0}};
  return plot;
}

TEST(SvgPlotTest, DrawsWhatItIsGiven) {
  const std::string svg = RenderSvg(SomePlot());
  EXPECT_TRUE(IsWellFormed(svg));
  EXPECT_THAT(svg, HasSubstr(">x, s</text>"));
  EXPECT_THAT(svg, HasSubstr("class=\"line line0\""));
  EXPECT_THAT(svg, HasSubstr("class=\"line line1\""));
  // The corners of the frame, and its middle.
  EXPECT_THAT(svg, HasSubstr("M70.0 246.0L385.0 140.0L700.0 34.0"));
}

TEST(SvgPlotTest, StaysWellFormedWhateverTextsAndValuesAre) {
  Plot plot = SomePlot();
  plot.title = "</text><script>\"'&\xFF\x01";
  plot.x.label = plot.y.label = plot.lines[0].name = plot.title;
  plot.x.ticks.push_back({1, plot.title});
  const double infinity = std::numeric_limits<double>::infinity();
  plot.lines[0].points = {{0, std::nan("")}, {infinity, 1}, {1, -infinity}};
  plot.bars.push_back({0, 1, infinity});
  plot.lines[1].points = {{-1e300, 1e300}};
  const std::string svg = RenderSvg(plot);
  EXPECT_TRUE(IsWellFormed(svg)) << svg;
  EXPECT_THAT(svg, Not(HasSubstr("<script>")));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
  EXPECT_TRUE(IsWellFormed(RenderSvg({})));
}

TEST(SvgPlotTest, TheCheckOfThisTestSeesBadXml) {
  EXPECT_TRUE(IsWellFormed("<a b=\"c\"><d/>x &amp; y</a>"));
  for (const char* bad : {"<a>", "</a>", "<a></b>", "<a>&</a>", "<a", "a>"}) {
    EXPECT_FALSE(IsWellFormed(bad)) << bad;
  }
}

TEST(SvgPlotTest, TicksAreRoundAndReachTheEnd) {
  for (const double most : {1e-6, 0.3, 1.0, 4.0, 9.99, 10.0, 7e5, 1e12}) {
    const std::vector<PlotTick> ticks = LinearTicks(most);
    EXPECT_GE(ticks.size(), 5u) << most;
    EXPECT_LE(ticks.size(), 11u) << most;
    EXPECT_EQ(ticks.front().at, 0);
    EXPECT_GE(ticks.back().at, most * (1 - 1e-9));
  }
  EXPECT_EQ(LinearTicks(10).at(1).label, "2");
  EXPECT_GE(LinearTicks(0).size(), 2u);
  EXPECT_GE(LinearTicks(std::nan("")).size(), 2u);
}

TEST(SvgPlotTest, LogTicksSayWhatTheyStandFor) {
  std::vector<std::string> labels;
  for (const PlotTick& tick : LogTicks(-1, 1)) {
    labels.push_back(tick.label);
  }
  EXPECT_EQ(labels, (std::vector<std::string>{"0.1", "0.2", "0.5", "1", "2",
                                              "5", "10"}));
  EXPECT_EQ(LogTicks(-3, 3).size(), 7u);
}

}  // namespace
}  // namespace quire
