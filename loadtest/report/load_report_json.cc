// SPDX-License-Identifier: Apache-2.0
#include "loadtest/report/load_report_json.h"

#include <chrono>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/json_text.h"
#include "loadtest/report/load_report_text.h"

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

Json OptionsJson(const LoadOptions& options) {
  Json json;
  json["archive"] = options.archive;
  json["mode"] = Text(NameOf(options.mode));
  json["what"] = Text(NameOf(options.what));
  json["distribution"] = Text(NameOf(options.distribution));
  json["zipf_exponent"] = options.zipf_exponent;
  json["seed"] = options.seed;
  json["range_size_min_bytes"] = options.range_size_bytes_min;
  json["range_size_bytes"] = options.range_size_bytes_max;
  json["requests"] = Optional(options.request_count);
  json["duration_seconds"] =
      options.duration.has_value() ? Json(Seconds(*options.duration)) : Json();
  json["warmup_requests"] = options.warmup_request_count;
  json["warmup_seconds"] = Seconds(options.warmup_duration);
  json["rate"] = Optional(options.requests_per_second);
  json["arrivals"] =
      options.is_open_loop() ? Json(Text(NameOf(options.arrivals))) : Json();
  json["in_flight"] = options.in_flight;
  json["streams"] = options.stream_count;
  json["batch_size"] = options.batch_size;
  json["encoding"] = Text(EncodingChoiceName(options.encoding));
  json["deadline_seconds"] = Seconds(options.deadline);
  return json;
}

Json ServerJson(const v1::ArchiveDescription& archive) {
  Json json;
  json["uuid"] = archive.uuid();
  json["codec"] = archive.codec();
  json["block_size_bytes"] = archive.block_size_bytes();
  json["size_bytes"] = archive.size_bytes();
  json["stored_size_bytes"] = archive.stored_size_bytes();
  json["documents"] = archive.document_count();
  return json;
}

void AddCounts(const LoadReport& report, Json& json) {
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
}

void AddTraffic(const LoadOptions& options, const LoadReport& report,
                Json& json) {
  json["seconds"] = report.elapsed_seconds;
  json["requests_per_second"] = report.PerSecond(report.request_count);
  json["text_bytes"] = report.text_bytes;
  json["text_bytes_per_second"] = report.PerSecond(report.text_bytes);
  json["wire_bytes"] = report.wire_bytes;
  json["wire_bytes_per_second"] = report.PerSecond(report.wire_bytes);
  json["message_bytes"] = report.message_bytes;
  json["fetched_bytes"] = report.fetched_bytes;
  Json& answers = json["answers"];
  for (const AnswerEncoding encoding :
       {AnswerEncoding::kIdentity, AnswerEncoding::kFsst,
        AnswerEncoding::kStored}) {
    answers[Text(AnswerEncodingName(encoding))] =
        report.traffic[IndexOf(encoding)].answer_count;
  }
  json["ended_at"] =
      Text(report.ended_at.has_value() ? AnswerEncodingName(*report.ended_at)
                                       : EncodingChoiceName(options.encoding));
  json["own_cpu_seconds"] = report.own_cpu_seconds;
}

void AddLatency(const LoadReport& report, Json& json) {
  const LatencyHistogram& latency = report.latency;
  Json& summary = json["latency_ms"];
  summary["mean"] = ToMs(latency.mean_us());
  summary["p50"] = PercentileMs(latency, 50);
  summary["p90"] = PercentileMs(latency, 90);
  summary["p99"] = PercentileMs(latency, 99);
  summary["p999"] = PercentileMs(latency, 99.9);
  summary["p9999"] = PercentileMs(latency, 99.99);
  summary["max"] = ToMs(static_cast<double>(latency.max_us()));
  summary["lower_bounds"] = report.lower_bound_count;
  summary["lower_bound_max"] =
      ToMs(static_cast<double>(report.lower_bound_max_us));
  Json& histogram = json["latency_histogram"] = Json::array();
  for (const LatencyHistogram::Bucket& bucket : latency.Buckets()) {
    Json row;
    row["up_to_ms"] = ToMs(static_cast<double>(bucket.upper_bound_us));
    row["count"] = bucket.count;
    histogram.push_back(std::move(row));
  }
}

void AddTimeline(const LoadTimeline& timeline, Json& json) {
  json["timeline_seconds"] = timeline.part_seconds();
  Json& rows = json["timeline"] = Json::array();
  // Tenths of a second divided by ten are exact where products are not.
  const double parts_per_second = 1 / timeline.part_seconds();
  for (size_t i = 0; i < timeline.parts().size(); ++i) {
    const LoadTimeline::Part& part = timeline.parts()[i];
    Json row;
    row["second"] = static_cast<double>(i) / parts_per_second;
    row["requests"] = part.request_count;
    row["text_bytes"] = part.text_bytes;
    row["p50_ms"] = PercentileMs(part.latency, 50);
    row["p99_ms"] = PercentileMs(part.latency, 99);
    rows.push_back(std::move(row));
  }
}

absl::string_view NameOf(LoadEnd end) {
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

}  // namespace

std::string RenderReportJson(const LoadOptions& options,
                             const LoadReport& report,
                             absl::string_view server_address) {
  Json json;
  json["format"] = 3;
  json["options"] = OptionsJson(options);
  json["load"] = DescribeLoad(options);
  json["caveats"] = CaveatsOf(options, report);
  json["address"] = Text(server_address);
  json["server"] = ServerJson(report.archive);
  json["compared"] = report.is_compared;
  json["ended_by"] = Text(NameOf(report.end));
  AddCounts(report, json);
  AddTraffic(options, report, json);
  AddLatency(report, json);
  AddTimeline(report.timeline, json);
  return absl::StrCat(JsonText(json, kIndent), "\n");
}

}  // namespace quire
