// SPDX-License-Identifier: Apache-2.0
//
// quire-loadtest: random reads against a server, each answer compared with the
// source.
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/channel_arguments.h"

#include "client/quire/wire_encoding.h"
#include "codecs/base/byte_size.h"
#include "deploy/manual/manual.h"
#include "loadtest/load_run.h"
#include "loadtest/source_text.h"

namespace quire {
namespace {

struct Arguments {
  std::string server = "localhost:7420";
  std::string source;
  std::string index;
  std::string mode = "ranges";
  std::string range_size = "16KiB";
  std::string range_size_min;
  std::string encoding = "identity";
  uint64_t seconds_max = 600;
  bool json = false;
  LoadOptions load;
};

void Declare(CLI::App& app, Arguments& arguments) {
  app.add_option("ARCHIVE", arguments.load.archive, "name of the archive")
      ->required();
  app.add_option("--server", arguments.server, "address of the server")
      ->capture_default_str();
  app.add_option("--source", arguments.source,
                 "the text the archive was built from, in one file")
      ->required();
  app.add_option("--index", arguments.index,
                 "its documents: lines of OFFSET<tab>SIZE<tab>ID");
  app.add_option("--mode", arguments.mode, "what to read at random")
      ->check(CLI::IsMember({"ranges", "documents"}))
      ->capture_default_str();
  app.add_option("--requests", arguments.load.request_count, "how many")
      ->capture_default_str();
  app.add_option("--in-flight", arguments.load.in_flight,
                 "calls that wait for an answer at any moment")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  app.add_option("--range-size", arguments.range_size, "size of the ranges")
      ->capture_default_str();
  app.add_option("--range-size-min", arguments.range_size_min,
                 "with this, sizes are uniform from here to --range-size");
  app.add_option("--encoding", arguments.encoding,
                 "how answers travel; tables that this takes are fetched first")
      ->check(CLI::IsMember({"identity", "fsst", "stored", "auto"}))
      ->capture_default_str();
  app.add_option("--seed", arguments.load.seed, "of what is drawn")
      ->capture_default_str();
  app.add_option("--seconds-max", arguments.seconds_max,
                 "start no request after so long")
      ->capture_default_str();
  app.add_flag("--json", arguments.json, "the report as one JSON object");
  Manual manual;
  manual.version = QUIRE_VERSION;
  manual.exit_codes = {{"0", "all answers were right"},
                       {"1", "an answer was wrong, or an error"},
                       {"2", "a mistake in the command line"},
                       {"3", "the run could not start"}};
  manual.see_also = {"quire(1)", "quired(1)"};
  AttachManual(app, manual);
}

absl::Status Complete(Arguments& arguments) {
  LoadOptions& load = arguments.load;
  const absl::StatusOr<uint64_t> size = ParseByteSize(arguments.range_size);
  if (!size.ok()) {
    return size.status();
  }
  load.range_size_bytes_max = *size;
  load.range_size_bytes_min = *size;
  if (!arguments.range_size_min.empty()) {
    const absl::StatusOr<uint64_t> least =
        ParseByteSize(arguments.range_size_min);
    if (!least.ok()) {
      return least.status();
    }
    load.range_size_bytes_min = *least;
  }
  if (load.range_size_bytes_min > load.range_size_bytes_max) {
    return absl::InvalidArgumentError(
        "--range-size-min is larger than --range-size");
  }
  load.kind =
      arguments.mode == "documents" ? LoadKind::kDocuments : LoadKind::kRanges;
  if (load.kind == LoadKind::kDocuments && arguments.index.empty()) {
    return absl::InvalidArgumentError("--mode documents needs --index");
  }
  const absl::StatusOr<EncodingChoice> encoding =
      ParseEncodingChoice(arguments.encoding);
  if (!encoding.ok()) {
    return encoding.status();
  }
  load.encoding = *encoding;
  load.time_max = std::chrono::seconds(arguments.seconds_max);
  return absl::OkStatus();
}

double PerSecond(double count, const LoadReport& report) {
  return report.elapsed_seconds > 0 ? count / report.elapsed_seconds : 0;
}

uint64_t ErrorCount(const LoadReport& report) {
  return report.request_count - report.right_count - report.wrong_count;
}

void PrintText(const Arguments& arguments, const LoadReport& report) {
  const auto count = static_cast<double>(report.request_count);
  absl::PrintF("%s %s, %d in flight, seed %d\n",
               FormatCount(report.request_count), arguments.mode,
               arguments.load.in_flight, arguments.load.seed);
  absl::PrintF("  right      %s of %s\n", FormatCount(report.right_count),
               FormatCount(report.request_count));
  absl::PrintF("  wrong      %s\n", FormatCount(report.wrong_count));
  absl::PrintF("  errors     %s\n", FormatCount(ErrorCount(report)));
  for (const auto& [code, errors] : report.errors) {
    absl::PrintF("    %s %s\n", FormatCount(errors), code);
  }
  absl::PrintF("  retries    %s\n", FormatCount(report.retry_count));
  absl::PrintF(
      "  rate       %.0f/s, %.1f MB/s, %.2f s in all\n",
      PerSecond(count, report),
      PerSecond(static_cast<double>(report.received_bytes), report) / 1e6,
      report.elapsed_seconds);
  absl::PrintF("  wire       %.1f MB/s, %s bytes of data, %s of messages\n",
               PerSecond(static_cast<double>(report.wire_bytes), report) / 1e6,
               FormatCount(report.wire_bytes),
               FormatCount(report.message_bytes));
  if (arguments.load.encoding != EncodingChoice::kIdentity) {
    for (const AnswerEncoding encoding :
         {AnswerEncoding::kIdentity, AnswerEncoding::kFsst,
          AnswerEncoding::kStored}) {
      const WireTraffic& traffic = report.traffic[IndexOf(encoding)];
      absl::PrintF("    %-8s %s answers, %s bytes from %s\n",
                   AnswerEncodingName(encoding),
                   FormatCount(traffic.answer_count),
                   FormatCount(traffic.decoded_size_bytes),
                   FormatCount(traffic.wire_size_bytes));
    }
    absl::PrintF("    tables   %s bytes, before the run\n",
                 FormatCount(report.fetched_bytes));
    if (report.ended_at.has_value()) {
      absl::PrintF("    ended at %s\n", AnswerEncodingName(*report.ended_at));
    }
  }
  absl::PrintF(
      "  latency    p50 %d us, p90 %d us, p99 %d us, p99.9 %d us, "
      "longest %d us\n",
      report.latency.PercentileUs(50), report.latency.PercentileUs(90),
      report.latency.PercentileUs(99), report.latency.PercentileUs(99.9),
      report.latency.max_us());
}

void PrintJson(const Arguments& arguments, const LoadReport& report) {
  std::string errors;
  for (const auto& [code, count] : report.errors) {
    absl::StrAppend(&errors, errors.empty() ? "" : ", ", "\"", code,
                    "\": ", count);
  }
  std::string answers;
  for (const AnswerEncoding encoding :
       {AnswerEncoding::kIdentity, AnswerEncoding::kFsst,
        AnswerEncoding::kStored}) {
    absl::StrAppend(&answers, answers.empty() ? "" : ", ", "\"",
                    AnswerEncodingName(encoding),
                    "\": ", report.traffic[IndexOf(encoding)].answer_count);
  }
  const LatencyHistogram& latency = report.latency;
  absl::PrintF(
      "{\"mode\": \"%s\", \"in_flight\": %d, \"seed\": %d, \"requests\": %d, "
      "\"right\": %d, \"wrong\": %d, \"retries\": %d, \"errors\": {%s}, "
      "\"seconds\": %.6f, "
      "\"requests_per_second\": %.1f, \"received_bytes\": %d, "
      "\"encoding\": \"%s\", \"wire_bytes\": %d, \"message_bytes\": %d, "
      "\"fetched_bytes\": %d, \"answers\": {%s}, \"ended_at\": \"%s\", "
      "\"latency_us\": {\"p50\": %d, \"p90\": %d, \"p99\": %d, \"p99.9\": %d, "
      "\"max\": %d}}\n",
      arguments.mode, arguments.load.in_flight, arguments.load.seed,
      report.request_count, report.right_count, report.wrong_count,
      report.retry_count, errors, report.elapsed_seconds,
      PerSecond(static_cast<double>(report.request_count), report),
      report.received_bytes, arguments.encoding, report.wire_bytes,
      report.message_bytes, report.fetched_bytes, answers,
      report.ended_at.has_value() ? AnswerEncodingName(*report.ended_at)
                                  : absl::string_view(arguments.encoding),
      latency.PercentileUs(50), latency.PercentileUs(90),
      latency.PercentileUs(99), latency.PercentileUs(99.9), latency.max_us());
}

absl::StatusOr<LoadReport> Run(const Arguments& arguments) {
  const absl::StatusOr<std::unique_ptr<SourceText>> source =
      SourceText::Open(arguments.source, arguments.index);
  if (!source.ok()) {
    return source.status();
  }
  grpc::ChannelArguments channel_arguments;
  channel_arguments.SetMaxReceiveMessageSize(-1);
  const std::shared_ptr<grpc::Channel> channel = grpc::CreateCustomChannel(
      arguments.server, grpc::InsecureChannelCredentials(), channel_arguments);
  return RunLoad(channel, **source, arguments.load);
}

int Main(int argc, char** argv) {
  CLI::App app(
      "Random reads against a Quire server, each answer compared "
      "with the source.",
      "quire-loadtest");
  Arguments arguments;
  Declare(app, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (const absl::Status status = Complete(arguments); !status.ok()) {
    std::cerr << "quire-loadtest: " << status.message() << "\n";
    return 2;
  }
  const absl::StatusOr<LoadReport> report = Run(arguments);
  if (!report.ok()) {
    std::cerr << "quire-loadtest: " << report.status() << "\n";
    return 3;
  }
  arguments.json ? PrintJson(arguments, *report)
                 : PrintText(arguments, *report);
  for (const std::string& fault : report->faults) {
    std::cerr << "quire-loadtest: " << fault << "\n";
  }
  return report->right_count == report->request_count ? 0 : 1;
}

}  // namespace
}  // namespace quire

int main(int argc, char** argv) {
  try {
    return quire::Main(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "quire-loadtest: " << error.what() << "\n";
    return 3;
  }
}
