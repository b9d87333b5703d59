// SPDX-License-Identifier: Apache-2.0
#include "loadtest/report/svg_plot.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "loadtest/report/utf8_text.h"

namespace quire {
namespace {

// Of the picture, and of the frame in it.
constexpr double kWidth = 720;
constexpr double kHeight = 300;
constexpr double kLeft = 70;
constexpr double kRight = 700;
constexpr double kTop = 34;
constexpr double kBottom = 246;

// More decades than these have no room for ticks within each.
constexpr double kFineDecadesMax = 3;

double Place(const PlotAxis& axis, double value, double begin, double end) {
  const double part = (value - axis.low) / (axis.high - axis.low);
  return begin + std::clamp(part, 0.0, 1.0) * (end - begin);
}

double PlaceX(const Plot& plot, double value) {
  return Place(plot.x, value, kLeft, kRight);
}

double PlaceY(const Plot& plot, double value) {
  return Place(plot.y, value, kBottom, kTop);
}

void AppendText(double x, double y, absl::string_view anchor,
                absl::string_view css_class, absl::string_view text,
                std::string& svg) {
  absl::StrAppendFormat(
      &svg,
      "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" class=\"%s\">%s</text>\n",
      x, y, anchor, css_class, EscapeHtml(text));
}

void AppendAxes(const Plot& plot, std::string& svg) {
  for (const PlotTick& tick : plot.x.ticks) {
    const double x = PlaceX(plot, tick.at);
    absl::StrAppendFormat(&svg,
                          "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>\n", x,
                          kTop, kBottom);
    AppendText(x, kBottom + 17, "middle", "tick", tick.label, svg);
  }
  for (const PlotTick& tick : plot.y.ticks) {
    const double y = PlaceY(plot, tick.at);
    absl::StrAppendFormat(&svg,
                          "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>\n",
                          kLeft, y, kRight);
    AppendText(kLeft - 7, y + 4, "end", "tick", tick.label, svg);
  }
  AppendText((kLeft + kRight) / 2, kHeight - 12, "middle", "label",
             plot.x.label, svg);
  absl::StrAppendFormat(&svg,
                        "<text transform=\"translate(15 %.1f) rotate(-90)\" "
                        "text-anchor=\"middle\" class=\"label\">%s</text>\n",
                        (kTop + kBottom) / 2, EscapeHtml(plot.y.label));
}

void AppendBars(const Plot& plot, std::string& svg) {
  for (const PlotBar& bar : plot.bars) {
    if (!std::isfinite(bar.from + bar.to + bar.height)) {
      continue;
    }
    const double left = PlaceX(plot, bar.from);
    const double top = PlaceY(plot, bar.height);
    absl::StrAppendFormat(
        &svg,
        "<rect class=\"bar\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
        "height=\"%.1f\"/>\n",
        left, top, std::max(0.5, PlaceX(plot, bar.to) - left - 0.5),
        kBottom - top);
  }
}

void AppendLines(const Plot& plot, std::string& svg) {
  double legend_x = kRight;
  for (size_t i = plot.lines.size(); i > 0; --i) {
    const PlotLine& line = plot.lines[i - 1];
    std::string path;
    for (const auto& [x, y] : line.points) {
      if (std::isfinite(x) && std::isfinite(y)) {
        absl::StrAppendFormat(&path, "%s%.1f %.1f", path.empty() ? "M" : "L",
                              PlaceX(plot, x), PlaceY(plot, y));
      }
    }
    if (!path.empty()) {
      absl::StrAppendFormat(&svg, "<path class=\"line line%d\" d=\"%s\"/>\n",
                            i - 1, path);
    }
    if (plot.lines.size() > 1) {
      AppendText(legend_x, kTop - 10, "end", "tick", line.name, svg);
      legend_x -= 12 + 6.5 * static_cast<double>(line.name.size());
      absl::StrAppendFormat(
          &svg, "<path class=\"line line%d\" d=\"M%.1f %.1fh14\"/>\n", i - 1,
          legend_x - 8, kTop - 14);
      legend_x -= 22;
    }
  }
}

}  // namespace

std::string EscapeHtml(absl::string_view bytes) {
  std::string out;
  for (const char c : ToUtf8(bytes)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        // XML has no place for other control characters.
        out += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t'
                   ? '?'
                   : c;
    }
  }
  return out;
}

std::string RenderSvg(const Plot& plot) {
  const std::string title = EscapeHtml(plot.title);
  std::string svg = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
      "role=\"img\" aria-label=\"%s\">\n",
      kWidth, kHeight, title);
  AppendText(kLeft, kTop - 10, "start", "title", plot.title, svg);
  AppendAxes(plot, svg);
  AppendBars(plot, svg);
  AppendLines(plot, svg);
  absl::StrAppendFormat(&svg,
                        "<path class=\"frame\" d=\"M%.1f %.1fV%.1fH%.1f\"/>\n",
                        kLeft, kTop, kBottom, kRight);
  return svg + "</svg>\n";
}

std::vector<PlotTick> LinearTicks(double most) {
  most = std::isfinite(most) && most > 0 ? most : 1;
  // A quarter of `most`, and down from there to a round number.
  const double power = std::pow(10, std::floor(std::log10(most / 4)));
  const double mantissa = most / 4 / power;
  const double step = power * (mantissa >= 5 ? 5 : mantissa >= 2 ? 2 : 1);
  std::vector<PlotTick> ticks;
  const auto last = static_cast<int>(std::ceil(most / step - 1e-9));
  for (int i = 0; i <= last; ++i) {
    const double at = i * step;
    ticks.push_back({.at = at, .label = absl::StrFormat("%.6g", at)});
  }
  return ticks;
}

std::vector<PlotTick> LogTicks(double low, double high) {
  constexpr double kNear = 1e-9;
  std::vector<PlotTick> ticks;
  const bool is_fine = high - low <= kFineDecadesMax;
  for (double power = std::floor(low); power <= high + kNear; ++power) {
    for (const int times : {1, 2, 5}) {
      const double at = power + std::log10(times);
      if ((times == 1 || is_fine) && at >= low - kNear && at <= high + kNear) {
        ticks.push_back(
            {.at = at,
             .label = absl::StrFormat("%.6g", times * std::pow(10, power))});
      }
    }
  }
  return ticks;
}

}  // namespace quire
