// SPDX-License-Identifier: Apache-2.0
#include "loadtest/report/load_report_json.h"

#include <vector>

#include "loadtest/report/json_writer.h"
#include "loadtest/report/load_report_text.h"

namespace quire {
namespace {

double ToMs(double us) {
  return us / 1000;
}

double PercentileMs(const LatencyHistogram& latency, double percent) {
  return ToMs(static_cast<double>(latency.PercentileUs(percent)));
}

// Null where `is_set` is false.
template <typename T>
void OptionalField(JsonWriter& json, absl::string_view key, bool is_set,
                   const T& value) {
  json.Key(key);
  is_set ? json.Value(value) : json.Null();
}

void WriteTexts(JsonWriter& json, absl::string_view key,
                const std::vector<std::string>& texts) {
  json.Key(key);
  json.BeginArray();
  for (const std::string& text : texts) {
    json.Value(text);
  }
  json.EndArray();
}

void WriteOptions(JsonWriter& json, const LoadOptions& options) {
  json.BeginObject();
  json.Field("archive", options.archive);
  json.Field("mode", NameOf(options.mode));
  json.Field("replay", options.is_replay);
  json.Field("what", NameOf(options.what));
  json.Field("distribution", NameOf(options.distribution));
  json.Field("zipf_exponent", options.zipf_exponent);
  json.Field("seed", options.seed);
  json.Field("range_size_min_bytes", options.range_size_bytes_min);
  json.Field("range_size_bytes", options.range_size_bytes_max);
  OptionalField(json, "requests", options.request_count.has_value(),
                options.request_count.value_or(0));
  OptionalField(json, "duration_seconds", options.duration.has_value(),
                std::chrono::duration<double>(
                    options.duration.value_or(std::chrono::milliseconds(0)))
                    .count());
  json.Field("warmup_requests", options.warmup_request_count);
  json.Field("warmup_seconds",
             std::chrono::duration<double>(options.warmup_duration).count());
  OptionalField(json, "rate", options.requests_per_second.has_value(),
                options.requests_per_second.value_or(0));
  OptionalField(json, "arrivals", options.is_open_loop(),
                NameOf(options.arrivals));
  json.Field("in_flight", options.in_flight);
  json.Field("streams", options.stream_count);
  json.Field("batch_size", options.batch_size);
  json.Field("encoding", EncodingChoiceName(options.encoding));
  json.Field("deadline_seconds",
             std::chrono::duration<double>(options.deadline).count());
  json.EndObject();
}

void WriteServer(JsonWriter& json, const v1::ArchiveDescription& archive) {
  json.BeginObject();
  json.Field("uuid", archive.uuid());
  json.Field("codec", archive.codec());
  json.Field("block_size_bytes", uint64_t{archive.block_size_bytes()});
  json.Field("size_bytes", uint64_t{archive.size_bytes()});
  json.Field("stored_size_bytes", uint64_t{archive.stored_size_bytes()});
  json.Field("documents", uint64_t{archive.document_count()});
  json.EndObject();
}

void WriteCounts(JsonWriter& json, const LoadReport& report) {
  json.Field("requests", report.request_count);
  json.Field("right", report.right_count);
  json.Field("wrong", report.wrong_count);
  json.Field("errors", report.error_count());
  json.Key("errors_by_code");
  json.BeginObject();
  for (const auto& [code, count] : report.errors) {
    json.Field(code, count);
  }
  json.EndObject();
  WriteTexts(json, "faults", report.faults);
  json.Field("retries", report.retry_count);
  json.Field("held", report.held_count);
  json.Field("late", report.late_count);
  json.Field("unstarted", report.unstarted_count);
  json.Field("unanswered", report.unanswered_count);
  json.Field("warmup_requests", report.warmup_count);
  json.Field("keeps_up", !report.could_not_keep_up());
}

void WriteTraffic(JsonWriter& json, const LoadOptions& options,
                  const LoadReport& report) {
  json.Field("seconds", report.elapsed_seconds);
  json.Field("requests_per_second", report.PerSecond(report.request_count));
  json.Field("text_bytes", report.text_bytes);
  json.Field("text_bytes_per_second", report.PerSecond(report.text_bytes));
  json.Field("wire_bytes", report.wire_bytes);
  json.Field("wire_bytes_per_second", report.PerSecond(report.wire_bytes));
  json.Field("message_bytes", report.message_bytes);
  json.Field("fetched_bytes", report.fetched_bytes);
  json.Key("answers");
  json.BeginObject();
  for (const AnswerEncoding encoding :
       {AnswerEncoding::kIdentity, AnswerEncoding::kFsst,
        AnswerEncoding::kStored}) {
    json.Field(AnswerEncodingName(encoding),
               report.traffic[IndexOf(encoding)].answer_count);
  }
  json.EndObject();
  json.Field("ended_at", report.ended_at.has_value()
                             ? AnswerEncodingName(*report.ended_at)
                             : EncodingChoiceName(options.encoding));
  json.Field("own_cpu_seconds", report.own_cpu_seconds);
}

void WriteLatency(JsonWriter& json, const LoadReport& report) {
  const LatencyHistogram& latency = report.latency;
  json.Key("latency_ms");
  json.BeginObject();
  json.Field("mean", ToMs(latency.mean_us()));
  json.Field("p50", PercentileMs(latency, 50));
  json.Field("p90", PercentileMs(latency, 90));
  json.Field("p99", PercentileMs(latency, 99));
  json.Field("p999", PercentileMs(latency, 99.9));
  json.Field("p9999", PercentileMs(latency, 99.99));
  json.Field("max", ToMs(static_cast<double>(latency.max_us())));
  json.Field("lower_bounds", report.lower_bound_count);
  json.Field("lower_bound_max",
             ToMs(static_cast<double>(report.lower_bound_max_us)));
  json.EndObject();
  json.Key("latency_histogram");
  json.BeginArray();
  for (const LatencyHistogram::Bucket& bucket : latency.Buckets()) {
    json.BeginObject();
    json.Field("up_to_ms", ToMs(static_cast<double>(bucket.upper_bound_us)));
    json.Field("count", bucket.count);
    json.EndObject();
  }
  json.EndArray();
}

void WriteTimeline(JsonWriter& json, const LoadTimeline& timeline) {
  json.Field("timeline_seconds", timeline.part_seconds());
  json.Key("timeline");
  json.BeginArray();
  // Tenths of a second divided by ten are exact where products are not.
  const double parts_per_second = 1 / timeline.part_seconds();
  for (size_t i = 0; i < timeline.parts().size(); ++i) {
    const LoadTimeline::Part& part = timeline.parts()[i];
    json.BeginObject();
    json.Field("second", static_cast<double>(i) / parts_per_second);
    json.Field("requests", part.request_count);
    json.Field("text_bytes", part.text_bytes);
    json.Field("p50_ms", PercentileMs(part.latency, 50));
    json.Field("p99_ms", PercentileMs(part.latency, 99));
    json.EndObject();
  }
  json.EndArray();
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
  JsonWriter json;
  json.BeginObject();
  json.Field("format", uint64_t{2});
  json.Key("options");
  WriteOptions(json, options);
  json.Field("load", DescribeLoad(options));
  WriteTexts(json, "caveats", CaveatsOf(options, report));
  json.Field("address", server_address);
  json.Key("server");
  WriteServer(json, report.archive);
  json.Field("compared", report.is_compared);
  json.Field("ended_by", NameOf(report.end));
  WriteCounts(json, report);
  WriteTraffic(json, options, report);
  WriteLatency(json, report);
  WriteTimeline(json, report.timeline);
  json.Key("server_metrics");
  json.BeginObject();
  for (const auto& [name, difference] : report.server_metrics) {
    json.Field(name, difference);
  }
  json.EndObject();
  json.EndObject();
  return json.Take();
}

}  // namespace quire
