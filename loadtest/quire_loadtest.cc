// SPDX-License-Identifier: Apache-2.0
//
// quire-loadtest: random reads against a server, each answer compared with the
// source.
#include <cmath>
#include <exception>
#include <fstream>
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
#include "loadtest/load_report_json.h"
#include "loadtest/load_run.h"
#include "loadtest/source_text.h"

namespace quire {
namespace {

struct Arguments {
  std::string server = "localhost:7420";
  std::string source;
  std::string index;
  std::string what = "ranges";
  std::string range_size = "16KiB";
  std::string range_size_min;
  std::string encoding = "identity";
  uint64_t request_count = 10'000;
  double duration_seconds = 600;
  std::string json;
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
  app.add_option("--what", arguments.what, "what to read at random")
      ->check(CLI::IsMember({"ranges", "documents"}))
      ->capture_default_str();
  app.add_option("--requests", arguments.request_count, "how many")
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
  app.add_option("--duration", arguments.duration_seconds,
                 "seconds after which no request is started")
      ->capture_default_str();
  app.add_option("--json", arguments.json,
                 "write the report to this file as one JSON object, too; - is "
                 "standard output, which then has nothing else");
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
  load.what =
      arguments.what == "documents" ? LoadKind::kDocuments : LoadKind::kRanges;
  if (load.what == LoadKind::kDocuments && arguments.index.empty()) {
    return absl::InvalidArgumentError("--what documents needs --index");
  }
  const absl::StatusOr<EncodingChoice> encoding =
      ParseEncodingChoice(arguments.encoding);
  if (!encoding.ok()) {
    return encoding.status();
  }
  load.encoding = *encoding;
  load.request_count = arguments.request_count;
  load.duration = std::chrono::milliseconds(
      std::llround(arguments.duration_seconds * 1000));
  return absl::OkStatus();
}

void PrintText(const Arguments& arguments, const LoadReport& report) {
  absl::PrintF("%s %s, %d in flight, seed %d\n",
               FormatCount(report.request_count), arguments.what,
               arguments.load.in_flight, arguments.load.seed);
  absl::PrintF("  right      %s of %s\n", FormatCount(report.right_count),
               FormatCount(report.request_count));
  absl::PrintF("  wrong      %s\n", FormatCount(report.wrong_count));
  absl::PrintF("  errors     %s\n", FormatCount(report.error_count()));
  for (const auto& [code, errors] : report.errors) {
    absl::PrintF("    %s %s\n", FormatCount(errors), code);
  }
  absl::PrintF("  retries    %s\n", FormatCount(report.retry_count));
  absl::PrintF("  rate       %.0f/s, %.1f MB/s, %.2f s in all\n",
               report.PerSecond(report.request_count),
               report.PerSecond(report.text_bytes) / 1e6,
               report.elapsed_seconds);
  absl::PrintF("  wire       %.1f MB/s, %s bytes of data, %s of messages\n",
               report.PerSecond(report.wire_bytes) / 1e6,
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

bool WriteFile(const std::string& path, const std::string& text) {
  if (path == "-") {
    std::cout << text;
    return static_cast<bool>(std::cout.flush());
  }
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  return static_cast<bool>(out);
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
  if (arguments.json != "-") {
    PrintText(arguments, *report);
  }
  if (!arguments.json.empty() &&
      !WriteFile(arguments.json, RenderReportJson(arguments.load, *report))) {
    std::cerr << "quire-loadtest: " << arguments.json
              << ": cannot be written\n";
    return 3;
  }
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
