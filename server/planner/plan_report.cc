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
  return cell.dictionary_size_bytes == 0
             ? cell.codec
             : absl::StrCat(cell.codec, " ",
                            FormatByteSizeExact(cell.dictionary_size_bytes));
}

// "'it'\''s'": for a shell.
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

const char* ObjectiveName(PlanObjective objective) {
  switch (objective) {
    case PlanObjective::kArchive:
      return "archive";
    case PlanObjective::kSpeed:
      return "speed";
    case PlanObjective::kBalanced:
      break;
  }
  return "balanced";
}

std::string Head(const PlanRequest& request, const Plan& plan) {
  const PlanOptions& options = request.options;
  std::string text = absl::StrFormat(
      "%s of text in %d documents; codecs tried on %s of it.\n"
      "Server: %d cores, disk %s, network %.3g Gbit/s; ranges of %s, %d in "
      "flight. Objective: %s.\n",
      FormatByteSize(plan.text_size_bytes), plan.document_count,
      FormatByteSize(plan.sample_size_bytes), options.core_count,
      PrintableMessage(options.drive.name),
      options.network_bytes_per_second * 8 / 1e9,
      FormatByteSizeExact(options.read_size_bytes), options.in_flight,
      ObjectiveName(options.objective));
  for (const std::string& note : plan.notes) {
    absl::StrAppend(&text, "Note: ", note, ".\n");
  }
  return text;
}

std::string Row(const Plan& plan, const PlanCell& cell, bool is_recommended) {
  const auto text = static_cast<double>(plan.text_size_bytes);
  return absl::StrFormat(
      "%c %-14s %7s %7.3f %6.3f-%-6.3f %9s %9s %9.0f %8.1f %9.0f %8.0f %9s  "
      "%s%s\n",
      is_recommended ? '*' : ' ', Name(cell),
      FormatByteSizeExact(cell.block_size_bytes),
      Percent(cell.size_bytes, text), Percent(cell.size_bytes_min, text),
      Percent(cell.size_bytes_max, text),
      cell.price.has_value() ? absl::StrFormat("%.2f", *cell.price) : "-",
      Time(cell.build_seconds), cell.random.per_second,
      cell.random.seconds * 1e3, cell.batch.per_second,
      cell.full_bytes_per_second / 1e6,
      FormatByteSize(static_cast<uint64_t>(cell.memory_bytes)),
      cell.random.limit,
      cell.unfit.empty() ? "" : absl::StrCat("; ", cell.unfit));
}

std::string Rows(const Plan& plan) {
  std::string text = absl::StrFormat(
      "  %-14s %7s %7s %13s %9s %9s %9s %8s %9s %8s %9s  %s\n", "codec",
      "block", "size %", "range", "euro", "build", "RANDOM/s", "ms", "BATCH/s",
      "FULL MB/s", "memory", "limit");
  for (const bool is_pareto : {true, false}) {
    for (size_t i = 0; i < plan.cells.size(); ++i) {
      if (plan.cells[i].is_pareto == is_pareto) {
        text += Row(plan, plan.cells[i], plan.recommended == i);
      }
    }
    if (is_pareto) {
      text += "  beaten in size and speed by one of these:\n";
    }
  }
  return text;
}

std::string Explanation(const PlanRequest& request, const Plan& plan) {
  if (!plan.recommended.has_value()) {
    return "\nNone is fit: raise --memory or --budget.\n";
  }
  const PlanCell& cell = plan.cells[*plan.recommended];
  std::string text = absl::StrFormat(
      "\n* recommended: %s in blocks of %s, %s%s. Random reads are limited by: "
      "%s.\n",
      Name(cell), FormatByteSizeExact(cell.block_size_bytes),
      FormatByteSize(static_cast<uint64_t>(cell.size_bytes)),
      cell.price.has_value() ? absl::StrFormat(" for %.2f euro", *cell.price)
                             : "",
      cell.random.limit);
  absl::StrAppend(&text,
                  "\nOn the wire, an answer and what the network lets "
                  "through:\n");
  for (const PlanEncoding& encoding : plan.encodings) {
    absl::StrAppendFormat(&text, "  %-9s %9.0f bytes %12.0f answers/s\n",
                          encoding.name, encoding.answer_bytes,
                          encoding.answers_per_second);
  }
  absl::StrAppend(&text,
                  "\nCompressing on the way pays on links slower than:\n");
  for (const PlanThreshold& threshold : plan.thresholds) {
    absl::StrAppendFormat(
        &text, "  %3d cores %9.0f MB/s, pipelined %9.0f MB/s\n",
        threshold.core_count, threshold.bytes_per_second / 1e6,
        threshold.pipelined_bytes_per_second / 1e6);
  }
  if (plan.plain_drives.unit_count > 0) {
    const auto price = [&](const StoragePurchase& bought) {
      return cell.price.has_value()
                 ? absl::StrFormat("%.2f euro, ", bought.price)
                 : "";
    };
    absl::StrAppendFormat(
        &text,
        "\nDrives of %s: %d for the text as it is; S1, as few as hold the "
        "archive: %d (%swriting at %.0f MB/s); S2, the same space over %d: "
        "%s%.0f MB/s\n",
        FormatByteSize(request.options.drive.capacity_bytes),
        plan.plain_drives.unit_count, plan.fewest_drives.unit_count,
        price(plan.fewest_drives), plan.fewest_drives.bytes_per_second / 1e6,
        plan.as_many_drives.unit_count, price(plan.as_many_drives),
        plan.as_many_drives.bytes_per_second / 1e6);
  }
  absl::StrAppend(&text, "\n");
  for (const std::string& command : CommandsFor(request, cell)) {
    absl::StrAppend(&text, "  ", command, "\n");
  }
  return text;
}

nlohmann::json ToJson(const Throughput& throughput) {
  return {{"per_second", throughput.per_second},
          {"seconds", throughput.seconds},
          {"limit", throughput.limit}};
}

nlohmann::json ToJson(const StoragePurchase& bought, bool has_price) {
  nlohmann::json json = {{"unit_count", bought.unit_count},
                         {"bytes_per_second", bought.bytes_per_second}};
  if (has_price) {
    json["price"] = bought.price;
  }
  return json;
}

nlohmann::json ToJson(const PlanCell& cell) {
  nlohmann::json json = {
      {"codec", cell.codec},
      {"block_size_bytes", cell.block_size_bytes},
      {"dictionary_size_bytes", cell.dictionary_size_bytes},
      {"encode_bytes_per_second", cell.figures.encode_bytes_per_second},
      {"decode_bytes_per_second", cell.figures.decode_bytes_per_second},
      {"size_bytes", std::round(cell.size_bytes)},
      {"size_bytes_min", std::round(cell.size_bytes_min)},
      {"size_bytes_max", std::round(cell.size_bytes_max)},
      {"build_seconds", cell.build_seconds},
      {"memory_bytes", std::round(cell.memory_bytes)},
      {"random", ToJson(cell.random)},
      {"batch", ToJson(cell.batch)},
      {"full_bytes_per_second", cell.full_bytes_per_second},
      {"full_stored_bytes_per_second", cell.full_stored_bytes_per_second},
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

// Points over two logarithmic axes.
struct Plot {
  std::string title;
  std::string x_name;
  std::string y_name;
  double (*x)(const PlanCell&);
  double (*y)(const PlanCell&);
};

std::string Svg(const Plot& plot, const Plan& plan) {
  constexpr double kWidth = 640;
  constexpr double kHeight = 400;
  constexpr double kMargin = 60;
  double x_min = INFINITY;
  double x_max = 0;
  double y_min = INFINITY;
  double y_max = 0;
  for (const PlanCell& cell : plan.cells) {
    x_min = std::min(x_min, plot.x(cell));
    x_max = std::max(x_max, plot.x(cell));
    y_min = std::min(y_min, plot.y(cell));
    y_max = std::max(y_max, plot.y(cell));
  }
  if (x_min <= 0 || y_min <= 0 || plan.cells.empty()) {
    return "";
  }
  const auto place = [](double value, double min, double max) {
    return max > min ? std::log(value / min) / std::log(max / min) : 0.5;
  };
  std::string svg = absl::StrFormat(
      "<h2>%s</h2>\n<svg viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\">\n"
      "<rect x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"%.0f\" "
      "fill=\"none\" "
      "stroke=\"#888\"/>\n",
      Html(plot.title), kWidth, kHeight, kWidth, kMargin, kMargin / 2,
      kWidth - 2 * kMargin, kHeight - 2 * kMargin);
  const auto label = [&](double x, double y, const char* anchor,
                         const std::string& words) {
    absl::StrAppendFormat(&svg,
                          "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" "
                          "font-size=\"11\">%s</text>\n",
                          x, y, anchor, Html(words));
  };
  const double bottom = kHeight - 1.5 * kMargin;
  label(kMargin, bottom + 16, "start", absl::StrFormat("%.3g", x_min));
  label(kWidth - kMargin, bottom + 16, "end", absl::StrFormat("%.3g", x_max));
  label(kWidth / 2, bottom + 34, "middle", plot.x_name);
  label(kMargin - 6, bottom, "end", absl::StrFormat("%.3g", y_min));
  label(kMargin - 6, kMargin / 2 + 10, "end", absl::StrFormat("%.3g", y_max));
  label(kMargin, kMargin / 2 - 8, "start", plot.y_name);
  for (size_t i = 0; i < plan.cells.size(); ++i) {
    const PlanCell& cell = plan.cells[i];
    const double x =
        kMargin + place(plot.x(cell), x_min, x_max) * (kWidth - 2 * kMargin);
    const double y =
        bottom - place(plot.y(cell), y_min, y_max) * (kHeight - 2 * kMargin);
    absl::StrAppendFormat(&svg,
                          "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%d\" "
                          "fill=\"%s\"><title>%s, blocks "
                          "of %s</title></circle>\n",
                          x, y, plan.recommended == i ? 7 : 4,
                          plan.recommended == i ? "#c00"
                          : cell.is_pareto      ? "#06c"
                                                : "#aaa",
                          Html(Name(cell)),
                          FormatByteSizeExact(cell.block_size_bytes));
  }
  return svg + "</svg>\n";
}

}  // namespace

std::vector<std::string> CommandsFor(const PlanRequest& request,
                                     const PlanCell& cell) {
  std::string build = absl::StrCat("quired build -o archive.quire --codec ",
                                   cell.codec, " --block-size ",
                                   FormatByteSizeExact(cell.block_size_bytes));
  if (cell.dictionary_size_bytes != 0) {
    absl::StrAppend(&build, " --dictionary-size ",
                    FormatByteSizeExact(cell.dictionary_size_bytes));
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
  nlohmann::json speeds = nlohmann::json::object();
  for (const auto& [codec, speed] : plan.codec_speeds) {
    speeds[codec] = {{"encode_bytes_per_second", speed.encode},
                     {"decode_bytes_per_second", speed.decode}};
  }
  nlohmann::json encodings = nlohmann::json::array();
  for (const PlanEncoding& encoding : plan.encodings) {
    encodings.push_back({{"name", encoding.name},
                         {"answer_bytes", encoding.answer_bytes},
                         {"answers_per_second", encoding.answers_per_second}});
  }
  nlohmann::json thresholds = nlohmann::json::array();
  for (const PlanThreshold& threshold : plan.thresholds) {
    thresholds.push_back(
        {{"core_count", threshold.core_count},
         {"bytes_per_second", threshold.bytes_per_second},
         {"pipelined_bytes_per_second", threshold.pipelined_bytes_per_second}});
  }
  const bool has_price = request.options.price_per_tb > 0;
  nlohmann::json json = {
      {"version", 2},
      {"text_size_bytes", plan.text_size_bytes},
      {"sample_size_bytes", plan.sample_size_bytes},
      {"document_count", plan.document_count},
      {"notes", plan.notes},
      {"disk", request.options.drive.name},
      {"network_bytes_per_second", request.options.network_bytes_per_second},
      {"core_count", request.options.core_count},
      {"read_size_bytes", request.options.read_size_bytes},
      {"in_flight", request.options.in_flight},
      {"objective", ObjectiveName(request.options.objective)},
      {"cells", std::move(cells)},
      {"codec_speeds", std::move(speeds)},
      {"encodings", std::move(encodings)},
      {"thresholds", std::move(thresholds)},
      {"plain_drives", ToJson(plan.plain_drives, has_price)},
      {"fewest_drives", ToJson(plan.fewest_drives, has_price)},
      {"as_many_drives", ToJson(plan.as_many_drives, has_price)}};
  if (plan.recommended.has_value()) {
    json["recommended"] = *plan.recommended;
    json["commands"] = CommandsFor(request, plan.cells[*plan.recommended]);
  }
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) +
         "\n";
}

std::string FormatPlanHtml(const PlanRequest& request, const Plan& plan) {
  std::string page = absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<title>Quire plan</title></head>\n<body "
      "style=\"font-family:sans-serif\">\n<h1>Quire plan</h1>\n<pre>",
      Html(FormatPlan(request, plan)), "</pre>\n");
  absl::StrAppend(
      &page,
      Svg({"Size and random reads", "bytes of the archive", "ranges a second",
           [](const PlanCell& cell) { return cell.size_bytes; },
           [](const PlanCell& cell) { return cell.random.per_second; }},
          plan));
  if (request.options.price_per_tb > 0) {
    absl::StrAppend(
        &page,
        Svg({"Price and reading all of it", "euro", "bytes of text a second",
             [](const PlanCell& cell) { return cell.price.value_or(0); },
             [](const PlanCell& cell) { return cell.full_bytes_per_second; }},
            plan));
  }
  return page + "</body></html>\n";
}

}  // namespace quire
