// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/planner/plan_report.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/printable_text.h"

#include "nlohmann/json.hpp"

namespace quire {
namespace {

double Percent(double part, double whole) {
  return whole > 0 ? 100 * part / whole : 0;
}

std::string Time(double seconds) {
  if (seconds < 90) {
    return absl::StrFormat("%.0f s", std::ceil(seconds));
  }
  if (seconds < 2 * 3600) {
    return absl::StrFormat("%.0f min", seconds / 60);
  }
  return seconds < 2 * 86400 ? absl::StrFormat("%.1f h", seconds / 3600)
                             : absl::StrFormat("%.1f days", seconds / 86400);
}

std::string Name(const PlanCell& cell) {
  return cell.arguments.empty() ? "(defaults)" : cell.arguments;
}

// Quotes for a shell: "'it'\''s'".
std::string Quoted(const std::string& word) {
  const bool is_plain =
      !word.empty() && std::ranges::all_of(word, [](unsigned char c) {
        return std::isalnum(c) != 0 || c == '/' || c == '.' || c == '_' ||
               c == '-' || c == '+' || c == ':' || c == ',' || c == '=';
      });
  return is_plain ? word
                  : absl::StrCat(
                        "'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

std::string Head(const PlanRequest& request, const Plan& plan) {
  const PlanOptions& options = request.options;
  std::string text = absl::StrFormat(
      "%s of text in %s; archives were built from %s of it.\n"
      "Server: %d cores, disk %s, network %.3g Gbit/s; ranges of %s. "
      "Objective: %s.\n",
      FormatByteSize(plan.text_size_bytes),
      FormatCounted(plan.document_count, "document", "documents"),
      plan.sample_size_bytes >= plan.text_size_bytes
          ? "all"
          : FormatByteSize(plan.sample_size_bytes),
      options.core_count, PrintableMessage(options.drive.name),
      options.network_bytes_per_second * 8 / 1e9,
      FormatByteSizeExact(options.read_size_bytes),
      ObjectiveName(options.objective));
  for (const std::string& note : plan.notes) {
    absl::StrAppend(&text, "Note: ", PrintableMessage(note), ".\n");
  }
  return text;
}

std::string Row(const Plan& plan, const PlanCell& cell, bool is_recommended) {
  const auto text = static_cast<double>(plan.text_size_bytes);
  return absl::StrFormat(
      "%c %7.3f %6.3f-%-6.3f %9s %9s %9.0f %-10s %9s  %s%s\n",
      is_recommended ? '*' : ' ', Percent(cell.size.size_bytes, text),
      Percent(cell.size.size_bytes_min, text),
      Percent(cell.size.size_bytes_max, text),
      cell.price.has_value() ? absl::StrFormat("%.2f", *cell.price) : "-",
      Time(cell.build_seconds), cell.reads_per_second, cell.bottleneck,
      FormatByteSize(static_cast<uint64_t>(cell.memory_bytes)), Name(cell),
      cell.unfit.empty() ? "" : absl::StrCat("; ", cell.unfit));
}

std::string Rows(const Plan& plan) {
  std::string text = absl::StrFormat(
      "  %7s %13s %9s %9s %9s %-10s %9s  %s\n", "size %", "range", "euro",
      "build", "reads/s", "limit", "memory", "options of build");
  std::string beaten;
  for (size_t i = 0; i < plan.cells.size(); ++i) {
    (plan.cells[i].is_pareto ? text : beaten) += Row(
        plan, plan.cells[i], plan.cells.size() > 1 && plan.recommended == i);
  }
  return beaten.empty()
             ? text
             : absl::StrCat(text,
                            "  beaten in size and speed by one of these:\n",
                            beaten);
}

// Requests to an object store that holds the archive.
struct StoreRequests {
  double per_million_reads = 0;
  double per_scan = 0;
};

// A read is one request, unless its blocks span more than the largest one; a
// scan reads a mebibyte at a time.
StoreRequests CountRequests(const PlanRequest& request, const Plan& plan,
                            const PlanCell& cell) {
  constexpr double kRequestBytesMax = 4 << 20;
  constexpr double kScanRequestBytes = 1 << 20;
  const double stored_share =
      plan.text_size_bytes == 0
          ? 1
          : cell.size.size_bytes / static_cast<double>(plan.text_size_bytes);
  const auto text_bytes = static_cast<double>(request.options.read_size_bytes +
                                              cell.block_size_bytes);
  return {.per_million_reads =
              1e6 * std::max(1.0, std::ceil(text_bytes * stored_share /
                                            kRequestBytesMax)),
          .per_scan = std::ceil(cell.size.size_bytes / kScanRequestBytes)};
}

double PriceOf(const PlanRequest& request, double count) {
  return count / 1e6 * request.options.price_per_million_requests;
}

std::string StoreLine(const PlanRequest& request, const Plan& plan,
                      const PlanCell& cell) {
  const StoreRequests requests = CountRequests(request, plan, cell);
  const auto with_price = [&](double count) {
    return request.options.price_per_million_requests > 0
               ? absl::StrFormat("%.0f GETs (%.2f euro)", count,
                                 PriceOf(request, count))
               : absl::StrFormat("%.0f GETs", count);
  };
  return absl::StrFormat(
      "In an object store, a million cold reads are %s, a full scan is %s.\n",
      with_price(requests.per_million_reads), with_price(requests.per_scan));
}

std::string PartsLine(const PlanRequest& request, const Plan& plan,
                      const PlanCell& cell) {
  const PartsForecast parts =
      ForecastParts(cell, request.options.machine_count);
  return absl::StrFormat(
      "On %d machines of %d cores: %s for quired dictionary, then %d parts of "
      "%s with quired build --like,\nat most %s each, and quired join: at most "
      "%s in all. Run quired dictionary on a sample to save time.\n",
      request.options.machine_count, request.options.core_count,
      Time(cell.preparation_seconds), parts.part_count,
      FormatByteSize(plan.text_size_bytes / parts.part_count),
      Time(parts.part_seconds), Time(parts.seconds));
}

std::string Explanation(const PlanRequest& request, const Plan& plan) {
  if (!plan.recommended.has_value()) {
    return plan.cells.size() == 1
               ? "\nIt is not fit: raise --memory or --budget, or give "
                 "--compare to forecast other archives.\n"
               : "\nNone is fit: raise --memory or --budget.\n";
  }
  const PlanCell& cell = plan.cells[*plan.recommended];
  std::string text = absl::StrFormat(
      "\n%s%s%s. Random reads are limited by: %s.\n\n",
      plan.cells.size() == 1 ? "Size: " : "* recommended: ",
      FormatByteSize(static_cast<uint64_t>(cell.size.size_bytes)),
      cell.price.has_value() ? absl::StrFormat(" for %.2f euro", *cell.price)
                             : "",
      cell.bottleneck);
  if (request.options.price_per_million_requests > 0) {
    absl::StrAppend(&text, StoreLine(request, plan, cell), "\n");
  }
  if (request.options.machine_count > 1) {
    absl::StrAppend(&text, PartsLine(request, plan, cell), "\n");
  }
  for (const std::string& command : CommandsFor(request, cell)) {
    absl::StrAppend(&text, "  ", command, "\n");
  }
  return text;
}

nlohmann::json ToJson(const PlanCell& cell) {
  nlohmann::json json = {
      {"arguments", cell.arguments},
      {"block_size_bytes", cell.block_size_bytes},
      {"dictionary_size_bytes", cell.dictionary_size_bytes},
      {"size_bytes", std::round(cell.size.size_bytes)},
      {"size_bytes_min", std::round(cell.size.size_bytes_min)},
      {"size_bytes_max", std::round(cell.size.size_bytes_max)},
      {"build_seconds", cell.build_seconds},
      {"preparation_seconds", cell.preparation_seconds},
      {"memory_bytes", std::round(cell.memory_bytes)},
      {"reads_per_second", cell.reads_per_second},
      {"bottleneck", cell.bottleneck},
      {"is_pareto", cell.is_pareto},
      {"unfit", cell.unfit}};
  if (cell.price.has_value()) {
    json["price"] = *cell.price;
  }
  return json;
}

std::string Html(const std::string& text) {
  return absl::StrReplaceAll(text,
                             {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}});
}

// Plots the cells by size and speed, both axes logarithmic.
std::string Svg(const Plan& plan) {
  constexpr double kWidth = 640;
  constexpr double kHeight = 400;
  constexpr double kMargin = 60;
  double x_min = INFINITY;
  double x_max = 0;
  double y_min = INFINITY;
  double y_max = 0;
  for (const PlanCell& cell : plan.cells) {
    x_min = std::min(x_min, cell.size.size_bytes);
    x_max = std::max(x_max, cell.size.size_bytes);
    y_min = std::min(y_min, cell.reads_per_second);
    y_max = std::max(y_max, cell.reads_per_second);
  }
  const auto place = [](double value, double min, double max) {
    return max > min ? std::log(value / min) / std::log(max / min) : 0.5;
  };
  std::string svg = absl::StrFormat(
      "<svg viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\">\n"
      "<rect x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"%.0f\" "
      "fill=\"none\" stroke=\"#888\"/>\n",
      kWidth, kHeight, kWidth, kMargin, kMargin / 2, kWidth - 2 * kMargin,
      kHeight - 2 * kMargin);
  const auto label = [&](double x, double y, const char* anchor,
                         const std::string& words) {
    absl::StrAppendFormat(&svg,
                          "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" "
                          "font-size=\"11\">%s</text>\n",
                          x, y, anchor, words);
  };
  const double bottom = kHeight - 1.5 * kMargin;
  label(kMargin, bottom + 16, "start", absl::StrFormat("%.3g", x_min));
  label(kWidth - kMargin, bottom + 16, "end", absl::StrFormat("%.3g", x_max));
  label(kWidth / 2, bottom + 34, "middle", "bytes of the archive");
  label(kMargin - 6, bottom, "end", absl::StrFormat("%.3g", y_min));
  label(kMargin - 6, kMargin / 2 + 10, "end", absl::StrFormat("%.3g", y_max));
  label(kMargin, kMargin / 2 - 8, "start", "random reads per second");
  for (size_t i = 0; i < plan.cells.size(); ++i) {
    const PlanCell& cell = plan.cells[i];
    const double x = kMargin + place(cell.size.size_bytes, x_min, x_max) *
                                   (kWidth - 2 * kMargin);
    const double y = bottom - place(cell.reads_per_second, y_min, y_max) *
                                  (kHeight - 2 * kMargin);
    absl::StrAppendFormat(
        &svg,
        "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%d\" fill=\"%s\"><title>%s"
        "</title></circle>\n",
        x, y, plan.recommended == i ? 7 : 4,
        plan.recommended == i ? "#c00"
        : cell.is_pareto      ? "#06c"
                              : "#aaa",
        Html(Name(cell)));
  }
  return svg + "</svg>\n";
}

}  // namespace

std::vector<std::string> CommandsFor(const PlanRequest& request,
                                     const PlanCell& cell) {
  std::string build =
      absl::StrCat("quired build -o archive.quire",
                   cell.arguments.empty() ? "" : " ", cell.arguments);
  for (const std::string& option : request.input_options) {
    absl::StrAppend(&build, " ", Quoted(option));
  }
  for (const std::string& input : request.inputs) {
    absl::StrAppend(&build, " ",
                    Quoted(input.starts_with('-') && input != "-"
                               ? absl::StrCat("./", input)
                               : input));
  }
  std::string serve = "quired serve archive.quire";
  if (request.options.memory_bytes != 0) {
    absl::StrAppend(&serve, " --memory ",
                    FormatByteSizeExact(request.options.memory_bytes));
  }
  return {build, serve};
}

std::string FormatPlan(const PlanRequest& request, const Plan& plan) {
  return absl::StrCat(Head(request, plan), "\n", Rows(plan),
                      Explanation(request, plan));
}

std::string FormatPlanJson(const PlanRequest& request, const Plan& plan) {
  nlohmann::json cells = nlohmann::json::array();
  for (const PlanCell& cell : plan.cells) {
    cells.push_back(ToJson(cell));
  }
  nlohmann::json json = {
      {"version", 1},
      {"text_size_bytes", plan.text_size_bytes},
      {"sample_size_bytes", plan.sample_size_bytes},
      {"document_count", plan.document_count},
      {"notes", plan.notes},
      {"disk", request.options.drive.name},
      {"network_bytes_per_second", request.options.network_bytes_per_second},
      {"core_count", request.options.core_count},
      {"read_size_bytes", request.options.read_size_bytes},
      {"objective", ObjectiveName(request.options.objective)},
      {"cells", std::move(cells)}};
  if (plan.recommended.has_value()) {
    const PlanCell& cell = plan.cells[*plan.recommended];
    const StoreRequests requests = CountRequests(request, plan, cell);
    json["store_requests_per_million_reads"] = requests.per_million_reads;
    json["store_requests_per_scan"] = requests.per_scan;
    if (request.options.price_per_million_requests > 0) {
      json["store_price_per_million_reads"] =
          PriceOf(request, requests.per_million_reads);
      json["store_price_per_scan"] = PriceOf(request, requests.per_scan);
    }
    const PartsForecast parts =
        ForecastParts(cell, request.options.machine_count);
    json["part_count"] = parts.part_count;
    json["part_seconds"] = parts.part_seconds;
    json["parallel_build_seconds"] = parts.seconds;
    json["recommended"] = *plan.recommended;
    json["commands"] = CommandsFor(request, plan.cells[*plan.recommended]);
  }
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) +
         "\n";
}

std::string FormatPlanHtml(const PlanRequest& request, const Plan& plan) {
  return absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<title>Quire plan</title></head>\n<body "
      "style=\"font-family:sans-serif\">\n<h1>Quire plan</h1>\n<pre>",
      Html(FormatPlan(request, plan)), "</pre>\n", Svg(plan),
      "</body></html>\n");
}

}  // namespace quire
