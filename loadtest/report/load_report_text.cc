// SPDX-License-Identifier: Apache-2.0
#include "loadtest/report/load_report_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"

#include "codecs/base/byte_size.h"

namespace quire {
namespace {

double Mega(double number) {
  return number / 1e6;
}

std::string Ms(const LatencyHistogram& latency, double percent) {
  return absl::StrFormat(
      "%.3f", static_cast<double>(latency.PercentileUs(percent)) / 1000);
}

std::string DescribeWhat(const LoadOptions& options) {
  if (options.mode == LoadMode::kFull) {
    return "the whole text";
  }
  if (options.what == LoadKind::kDocuments) {
    return "documents";
  }
  const std::string most = FormatCount(options.range_size_bytes_max);
  return options.range_size_bytes_min == options.range_size_bytes_max
             ? absl::StrCat("ranges of ", most, " bytes")
             : absl::StrCat("ranges of ",
                            FormatCount(options.range_size_bytes_min), " to ",
                            most, " bytes");
}

void AppendCounts(const LoadReport& report, std::string& out) {
  absl::StrAppend(&out, "  right      ", FormatCount(report.right_count),
                  " of ", FormatCount(report.request_count), "\n");
  absl::StrAppend(&out, "  wrong      ", FormatCount(report.wrong_count), "\n");
  absl::StrAppend(&out, "  errors     ", FormatCount(report.error_count()),
                  "\n");
  for (const auto& [code, count] : report.errors) {
    absl::StrAppend(&out, "    ", FormatCount(count), " ", code, "\n");
  }
  absl::StrAppend(&out, "  retries    ", FormatCount(report.retry_count), "\n");
  if (report.warmup_count > 0) {
    absl::StrAppend(&out, "  warm-up    ", FormatCount(report.warmup_count),
                    " before, not counted\n");
  }
  if (report.unanswered_count > 0) {
    absl::StrAppend(&out, "  unanswered ", FormatCount(report.unanswered_count),
                    " when the run ended\n");
  }
}

void AppendOpenLoop(const LoadReport& report, std::string& out) {
  absl::StrAppend(&out, "  arrivals   ", FormatCount(report.held_count),
                  " held by the bound, ", FormatCount(report.late_count),
                  " late by this program, ",
                  FormatCount(report.unstarted_count), " never started\n");
}

void AppendWire(const LoadOptions& options, const LoadReport& report,
                std::string& out) {
  absl::StrAppendFormat(
      &out, "  wire       %.1f MB/s, %s bytes of data, %s of messages\n",
      Mega(report.PerSecond(report.wire_bytes)), FormatCount(report.wire_bytes),
      FormatCount(report.message_bytes));
  if (options.encoding == EncodingChoice::kIdentity) {
    return;
  }
  for (const AnswerEncoding encoding :
       {AnswerEncoding::kIdentity, AnswerEncoding::kFsst,
        AnswerEncoding::kStored}) {
    const WireTraffic& traffic = report.traffic[IndexOf(encoding)];
    absl::StrAppendFormat(&out, "    %-8s %s answers, %s bytes from %s\n",
                          AnswerEncodingName(encoding),
                          FormatCount(traffic.answer_count),
                          FormatCount(traffic.decoded_size_bytes),
                          FormatCount(traffic.wire_size_bytes));
  }
  absl::StrAppend(&out, "    tables   ", FormatCount(report.fetched_bytes),
                  " bytes, before the run\n");
  if (report.ended_at.has_value()) {
    absl::StrAppend(&out, "    ended at ", AnswerEncodingName(*report.ended_at),
                    "\n");
  }
}

void AppendLatency(const LoadReport& report, std::string& out) {
  const LatencyHistogram& latency = report.latency;
  absl::StrAppend(&out, "  latency    ms, from when a request was due\n");
  absl::StrAppendFormat(&out, "    mean %.3f   p50 %s   p90 %s   p99 %s\n",
                        latency.mean_us() / 1000, Ms(latency, 50),
                        Ms(latency, 90), Ms(latency, 99));
  const bool is_lower_bound = report.lower_bound_count > 0 &&
                              report.lower_bound_max_us == latency.max_us();
  absl::StrAppendFormat(&out, "    p99.9 %s   p99.99 %s   longest %s%.3f\n",
                        Ms(latency, 99.9), Ms(latency, 99.99),
                        is_lower_bound ? "at least " : "",
                        static_cast<double>(latency.max_us()) / 1000);
}

}  // namespace

std::string DescribeLoad(const LoadOptions& options) {
  std::string text =
      absl::StrCat(NameOf(options.mode), ", ", DescribeWhat(options), ", ");
  if (options.mode != LoadMode::kFull) {
    absl::StrAppend(&text, NameOf(options.distribution));
    if (options.distribution == LoadDistribution::kZipf) {
      absl::StrAppend(&text, " ", options.zipf_exponent);
    }
    absl::StrAppend(&text, ", ");
  }
  if (options.requests_per_second.has_value()) {
    absl::StrAppend(&text, "open loop of ", *options.requests_per_second,
                    "/s, ", NameOf(options.arrivals), ", at most ");
  } else {
    absl::StrAppend(&text, "closed loop of ");
  }
  if (options.mode == LoadMode::kRandom) {
    absl::StrAppend(&text, options.in_flight, " in flight");
  } else {
    absl::StrAppend(&text,
                    FormatCounted(options.stream_count, "stream", "streams"));
  }
  if (options.mode == LoadMode::kBatch) {
    absl::StrAppend(&text, " of ", FormatCount(options.batch_size));
  }
  return absl::StrCat(text, ", seed ", options.seed);
}

std::vector<std::string> CaveatsOf(const LoadOptions& options,
                                   const LoadReport& report) {
  std::vector<std::string> caveats;
  if (!report.is_compared) {
    caveats.emplace_back(
        "Contents were not compared with a source, only checksums, ranges and "
        "descriptions were checked.");
  }
  if (report.could_not_keep_up()) {
    caveats.push_back(absl::StrCat(
        "This program could not keep up: it started ",
        FormatCounted(report.late_count, "arrival", "arrivals"),
        " more than a millisecond late. Part of the latency is its "
        "own."));
  }
  if (report.unstarted_count > 0 && report.held_count > 0) {
    caveats.push_back(absl::StrCat(
        "The server did not keep up: when the run ended, ",
        FormatCounted(report.unstarted_count,
                      "arrival that was due had not been started",
                      "arrivals that were due had not been started"),
        ", as only ",
        FormatCounted(options.mode == LoadMode::kRandom ? options.in_flight
                                                        : options.stream_count,
                      "call", "calls"),
        " may be out."));
  }
  if (report.lower_bound_count > 0) {
    caveats.push_back(absl::StrCat(
        FormatCounted(report.lower_bound_count, "latency is a lower bound",
                      "latencies are lower bounds"),
        ": these requests were abandoned without an answer."));
  }
  if (report.end == LoadEnd::kInterrupt) {
    caveats.emplace_back(
        "The run was interrupted; the report covers the part before.");
  }
  if (report.end == LoadEnd::kSilence) {
    caveats.push_back(
        absl::StrCat("The server sent nothing for ",
                     absl::FormatDuration(absl::FromChrono(options.deadline)),
                     ", so the run was abandoned."));
  }
  if (report.request_count == 0) {
    caveats.emplace_back("No request was answered after the warm-up.");
  }
  return caveats;
}

std::string RenderReportText(const LoadOptions& options,
                             const LoadReport& report) {
  std::string out =
      absl::StrCat(FormatCounted(report.request_count, "request", "requests"),
                   ": ", DescribeLoad(options), "\n");
  AppendCounts(report, out);
  if (options.is_open_loop()) {
    AppendOpenLoop(report, out);
  }
  absl::StrAppendFormat(
      &out, "  rate       %.0f/s, %.1f MB/s, %.2f s in total\n",
      report.PerSecond(report.request_count),
      Mega(report.PerSecond(report.text_bytes)), report.elapsed_seconds);
  AppendWire(options, report, out);
  AppendLatency(report, out);
  absl::StrAppendFormat(&out, "  own CPU    %.2f s, %.0f us per request\n",
                        report.own_cpu_seconds,
                        report.request_count == 0
                            ? 0
                            : report.own_cpu_seconds * 1e6 /
                                  static_cast<double>(report.request_count));
  for (const std::string& caveat : CaveatsOf(options, report)) {
    absl::StrAppend(&out, "  ", caveat, "\n");
  }
  return out;
}

}  // namespace quire
