// SPDX-License-Identifier: Apache-2.0
#include "loadtest/report/load_report_html.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "codecs/base/byte_size.h"
#include "loadtest/report/load_report_plots.h"
#include "loadtest/report/load_report_text.h"
#include "loadtest/report/svg_plot.h"

namespace quire {
namespace {

using Rows = std::vector<std::pair<std::string, std::string>>;

constexpr absl::string_view kStyle = R"(
:root { color-scheme: light dark; --paper: #fff; --ink: #1c2330;
  --faint: #5c6675; --rule: #d9dee6; --card: #f5f7fa; --line0: #2563c9;
  --line1: #c2410c; --warn: #92400e; --warn-paper: #fef3c7; }
@media (prefers-color-scheme: dark) { :root { --paper: #12161d; --ink: #e4e8ee;
  --faint: #9aa5b4; --rule: #2c3440; --card: #1a2029; --line0: #6ea8fe;
  --line1: #fb923c; --warn: #fde68a; --warn-paper: #3a2c0a; } }
body { background: var(--paper); color: var(--ink); margin: 2rem auto;
  max-width: 62rem; padding: 0 1.25rem;
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; }
h2 { font-size: 1.1rem; margin: 2rem 0 .75rem; }
.load { color: var(--faint); margin: 0 0 1.25rem; }
.warn { background: var(--warn-paper); color: var(--warn); padding: .5rem .9rem;
  border-radius: .4rem; margin: .5rem 0; }
.tiles { display: grid; gap: .75rem;
  grid-template-columns: repeat(auto-fill, minmax(9rem, 1fr)); }
.tile { background: var(--card); border-radius: .5rem; padding: .7rem .9rem; }
.tile b { display: block; font-size: 1.3rem; font-variant-numeric: tabular-nums; }
.tile span { color: var(--faint); font-size: .85rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
td { border-bottom: 1px solid var(--rule); padding: .3rem .5rem .3rem 0;
  vertical-align: top; overflow-wrap: anywhere; }
td + td { text-align: right; }
.pair { display: grid; gap: 0 2.5rem;
  grid-template-columns: repeat(auto-fit, minmax(20rem, 1fr)); }
svg { width: 100%; height: auto; margin: .5rem 0 1rem; }
svg text { fill: var(--faint); font-size: 12px; }
svg .title { fill: var(--ink); font-size: 14px; font-weight: 600; }
svg .label { font-size: 12.5px; }
svg .grid { stroke: var(--rule); stroke-width: 1; fill: none; }
svg .frame { stroke: var(--faint); stroke-width: 1; fill: none; }
svg .bar { fill: var(--line0); }
svg .line { fill: none; stroke-width: 1.8; stroke-linejoin: round; }
svg .line0 { stroke: var(--line0); }
svg .line1 { stroke: var(--line1); }
)";

std::string Ms(const LatencyHistogram& latency, double percent) {
  return absl::StrFormat(
      "%.3f ms", static_cast<double>(latency.PercentileUs(percent)) / 1000);
}

std::string MegabytesPerSecond(const LoadReport& report, uint64_t bytes) {
  return absl::StrFormat("%.1f MB/s", report.PerSecond(bytes) / 1e6);
}

void AppendTable(absl::string_view title, const Rows& rows, std::string& html) {
  if (rows.empty()) {
    return;
  }
  absl::StrAppend(&html, "<section><h2>", title, "</h2>\n<table>\n");
  for (const auto& [name, value] : rows) {
    absl::StrAppend(&html, "<tr><td>", EscapeHtml(name), "</td><td>",
                    EscapeHtml(value), "</td></tr>\n");
  }
  html += "</table></section>\n";
}

void AppendTiles(const Rows& tiles, std::string& html) {
  html += "<div class=\"tiles\">\n";
  for (const auto& [name, value] : tiles) {
    absl::StrAppend(&html, "<div class=\"tile\"><b>", EscapeHtml(value),
                    "</b><span>", EscapeHtml(name), "</span></div>\n");
  }
  html += "</div>\n";
}

Rows Tiles(const LoadReport& report) {
  return {{"requests a second",
           absl::StrFormat("%.0f", report.PerSecond(report.request_count))},
          {"text", MegabytesPerSecond(report, report.text_bytes)},
          {"on the wire", MegabytesPerSecond(report, report.wire_bytes)},
          {"median latency", Ms(report.latency, 50)},
          {"99th percentile", Ms(report.latency, 99)},
          {"wrong or failed",
           FormatCount(report.request_count - report.right_count)}};
}

Rows LatencyRows(const LatencyHistogram& latency) {
  Rows rows = {{"mean", absl::StrFormat("%.3f ms", latency.mean_us() / 1000)}};
  for (const double percent : {50.0, 90.0, 99.0, 99.9, 99.99}) {
    rows.emplace_back(absl::StrCat("p", percent), Ms(latency, percent));
  }
  rows.emplace_back("longest", Ms(latency, 100));
  return rows;
}

Rows CountRows(const LoadOptions& options, const LoadReport& report) {
  Rows rows = {{"requests", FormatCount(report.request_count)},
               {"right", FormatCount(report.right_count)},
               {"wrong", FormatCount(report.wrong_count)},
               {"errors", FormatCount(report.error_count())}};
  for (const auto& [code, count] : report.errors) {
    rows.emplace_back(code, FormatCount(count));
  }
  rows.insert(rows.end(),
              {{"asked again, server busy", FormatCount(report.retry_count)},
               {"warm-up, not counted", FormatCount(report.warmup_count)},
               {"cut at the end", FormatCount(report.cut_count)},
               {"time", absl::StrFormat("%.2f s", report.elapsed_seconds)},
               {"text", absl::StrCat(FormatCount(report.text_bytes), " bytes")},
               {"data on the wire",
                absl::StrCat(FormatCount(report.wire_bytes), " bytes")},
               {"CPU of the generator",
                absl::StrFormat("%.2f s", report.own_cpu_seconds)}});
  if (options.is_open_loop()) {
    rows.insert(
        rows.end(),
        {{"arrivals held by the bound", FormatCount(report.held_count)},
         {"arrivals late by the generator", FormatCount(report.late_count)},
         {"arrivals never started", FormatCount(report.unstarted_count)}});
  }
  return rows;
}

Rows ServerRows(const LoadOptions& options, const LoadReport& report,
                absl::string_view server) {
  const v1::ArchiveDescription& archive = report.archive;
  return {
      {"address", std::string(server)},
      {"archive", options.archive},
      {"uuid", archive.uuid()},
      {"codec", archive.codec()},
      {"block",
       absl::StrCat(FormatCount(archive.block_size_bytes()), " bytes")},
      {"text", absl::StrCat(FormatCount(archive.size_bytes()), " bytes")},
      {"stored",
       absl::StrCat(FormatCount(archive.stored_size_bytes()), " bytes")},
      {"documents", FormatCount(archive.document_count())},
      {"encoding asked for", std::string(EncodingChoiceName(options.encoding))},
      {"contents compared", report.is_compared ? "yes" : "no"}};
}

Rows CounterRows(const LoadReport& report) {
  Rows rows;
  for (const auto& [name, rise] : report.server_metrics) {
    if (rise != 0) {
      rows.emplace_back(name, absl::StrFormat("%.10g", rise));
    }
  }
  return rows;
}

void AppendPlots(const LoadReport& report, std::string& html) {
  if (report.right_count == 0) {
    return;
  }
  html += "<h2>Latency</h2>\n";
  html += RenderSvg(PercentilePlot(report));
  html += RenderSvg(HistogramPlot(report));
  html += RenderSvg(LatencyTimePlot(report));
  html += "<h2>Throughput</h2>\n";
  html += RenderSvg(RequestTimePlot(report));
  html += RenderSvg(TextTimePlot(report));
}

}  // namespace

std::string RenderReportHtml(const LoadOptions& options,
                             const LoadReport& report,
                             absl::string_view server) {
  std::string html = absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">\n<title>quire-loadtest: ",
      EscapeHtml(options.archive), "</title>\n<style>", kStyle,
      "</style></head>\n<body>\n<h1>Load on ", EscapeHtml(options.archive),
      "</h1>\n<p class=\"load\">", EscapeHtml(DescribeLoad(options)), "</p>\n");
  for (const std::string& caveat : CaveatsOf(options, report)) {
    absl::StrAppend(&html, "<p class=\"warn\">", EscapeHtml(caveat), "</p>\n");
  }
  for (const std::string& fault : report.faults) {
    absl::StrAppend(&html, "<p class=\"warn\">", EscapeHtml(fault), "</p>\n");
  }
  AppendTiles(Tiles(report), html);
  AppendPlots(report, html);
  html += "<div class=\"pair\">\n";
  AppendTable("Latency, from when a request was due",
              LatencyRows(report.latency), html);
  AppendTable("Counts", CountRows(options, report), html);
  html += "</div>\n";
  AppendTable("Server", ServerRows(options, report, server), html);
  AppendTable("How much the server's counters rose", CounterRows(report), html);
  return html + "</body></html>\n";
}

}  // namespace quire
