// SPDX-License-Identifier: Apache-2.0
#include "loadtest/report/load_report.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/json_text.h"

#include "nlohmann/json.hpp"

namespace quire {
namespace {

constexpr int kIndent = 2;

double ToMs(double us) {
  return us / 1000;
}

double PercentileMs(const LatencyHistogram& latency, double percent) {
  return ToMs(static_cast<double>(latency.PercentileUs(percent)));
}

std::string Text(absl::string_view text) {
  return std::string(text);
}

double Seconds(std::chrono::duration<double> duration) {
  return duration.count();
}

// Null if the value is unset.
template <typename T>
Json Optional(const std::optional<T>& value) {
  return value.has_value() ? Json(*value) : Json();
}

const char* NameOf(LoadMode mode) {
  switch (mode) {
    case LoadMode::kRandom:
      return "random";
    case LoadMode::kBatch:
      return "batch";
    case LoadMode::kFull:
      return "full";
  }
  return "";
}

const char* NameOf(LoadEnd end) {
  switch (end) {
    case LoadEnd::kRequests:
      return "requests";
    case LoadEnd::kDuration:
      return "duration";
    case LoadEnd::kInterrupt:
      return "interrupt";
    case LoadEnd::kSilence:
      return "silence";
  }
  return "";
}

Json OptionsJson(const LoadOptions& options) {
  return {{"archive", options.archive},
          {"mode", NameOf(options.mode)},
          {"what", options.what == LoadKind::kRanges ? "ranges" : "documents"},
          {"seed", options.seed},
          {"range_size_bytes", options.range_size_bytes},
          {"requests", Optional(options.request_count)},
          {"duration_seconds", options.duration.has_value()
                                   ? Json(Seconds(*options.duration))
                                   : Json()},
          {"warmup_seconds", Seconds(options.warmup)},
          {"rate", Optional(options.requests_per_second)},
          {"in_flight", options.in_flight},
          {"batch_size", options.batch_size},
          {"encoding", Text(AnswerEncodingName(options.encoding))},
          {"deadline_seconds", Seconds(options.deadline)}};
}

Json ServerJson(const v1::ArchiveDescription& archive) {
  return {{"uuid", archive.uuid()},
          {"codec", archive.codec()},
          {"block_size_bytes", archive.block_size_bytes()},
          {"size_bytes", archive.size_bytes()},
          {"stored_size_bytes", archive.stored_size_bytes()},
          {"documents", archive.document_count()}};
}

Json LatencyJson(const LoadReport& report) {
  const LatencyHistogram& latency = report.latency;
  return {{"mean", ToMs(latency.mean_us())},
          {"p50", PercentileMs(latency, 50)},
          {"p90", PercentileMs(latency, 90)},
          {"p99", PercentileMs(latency, 99)},
          {"p999", PercentileMs(latency, 99.9)},
          {"p9999", PercentileMs(latency, 99.99)},
          {"max", ToMs(static_cast<double>(latency.max_us()))},
          {"lower_bounds", report.lower_bound_count},
          {"lower_bound_max",
           ToMs(static_cast<double>(report.lower_bound_max_us))}};
}

}  // namespace

std::string RenderReportJson(const LoadOptions& options,
                             const LoadReport& report,
                             absl::string_view server_address) {
  Json json;
  json["format"] = 4;
  json["options"] = OptionsJson(options);
  json["address"] = Text(server_address);
  json["server"] = ServerJson(report.archive);
  json["compared"] = report.is_compared;
  json["ended_by"] = NameOf(report.end);
  json["requests"] = report.request_count;
  json["right"] = report.right_count;
  json["wrong"] = report.wrong_count;
  json["errors"] = report.error_count();
  Json& errors_by_code = json["errors_by_code"] = Json::object();
  for (const auto& [code, count] : report.errors) {
    errors_by_code[code] = count;
  }
  json["faults"] = report.faults;
  json["retries"] = report.retry_count;
  json["held"] = report.held_count;
  json["late"] = report.late_count;
  json["unstarted"] = report.unstarted_count;
  json["unanswered"] = report.unanswered_count;
  json["warmup_requests"] = report.warmup_count;
  json["keeps_up"] = !report.could_not_keep_up();
  json["seconds"] = report.elapsed_seconds;
  json["requests_per_second"] = report.PerSecond(report.request_count);
  json["text_bytes"] = report.text_bytes;
  json["text_bytes_per_second"] = report.PerSecond(report.text_bytes);
  json["wire_bytes"] = report.wire_bytes;
  json["message_bytes"] = report.message_bytes;
  json["own_cpu_seconds"] = report.own_cpu_seconds;
  json["latency_ms"] = LatencyJson(report);
  return absl::StrCat(JsonText(json, kIndent), "\n");
}

std::string RenderReportText(const LoadOptions& options,
                             const LoadReport& report) {
  std::string out =
      absl::StrCat(FormatCounted(report.request_count, "request", "requests"),
                   ": ", FormatCount(report.right_count), " right, ",
                   FormatCount(report.wrong_count), " wrong, ",
                   FormatCounted(report.error_count(), "error", "errors"), ", ",
                   FormatCounted(report.retry_count, "retry", "retries"), "\n");
  for (const auto& [code, count] : report.errors) {
    absl::StrAppend(&out, "  ", FormatCount(count), " ", code, "\n");
  }
  absl::StrAppendFormat(
      &out,
      "  rate     %.0f/s, %.1f MB/s of text, %.1f MB/s on the wire, %.2f s\n",
      report.PerSecond(report.request_count),
      report.PerSecond(report.text_bytes) / 1e6,
      report.PerSecond(report.wire_bytes) / 1e6, report.elapsed_seconds);
  const LatencyHistogram& latency = report.latency;
  absl::StrAppendFormat(
      &out,
      "  latency  mean %.3f ms, p50 %.3f, p90 %.3f, p99 %.3f, p99.9 %.3f, "
      "longest %.3f\n",
      ToMs(latency.mean_us()), PercentileMs(latency, 50),
      PercentileMs(latency, 90), PercentileMs(latency, 99),
      PercentileMs(latency, 99.9), ToMs(static_cast<double>(latency.max_us())));
  absl::StrAppendFormat(&out, "  own CPU  %.2f s\n", report.own_cpu_seconds);
  for (const auto& [is_so, warning] :
       {std::pair(!report.is_compared,
                  std::string("Contents were not compared with a source.")),
        std::pair(report.could_not_keep_up(),
                  absl::StrCat("This program could not keep up. Arrivals that "
                               "started more than a millisecond late: ",
                               FormatCount(report.late_count))),
        std::pair(report.unstarted_count > 0,
                  absl::StrCat("Arrivals that were due and never started: ",
                               FormatCount(report.unstarted_count))),
        std::pair(report.lower_bound_count > 0,
                  absl::StrCat("Latencies that are lower bounds, of abandoned "
                               "requests: ",
                               FormatCount(report.lower_bound_count))),
        std::pair(report.end == LoadEnd::kInterrupt,
                  std::string("The run was interrupted.")),
        std::pair(report.end == LoadEnd::kSilence,
                  absl::StrCat(
                      "The server sent nothing for ",
                      absl::FormatDuration(absl::FromChrono(options.deadline)),
                      ", so the run was abandoned."))}) {
    if (is_so) {
      absl::StrAppend(&out, "  ", warning, "\n");
    }
  }
  return out;
}

}  // namespace quire
