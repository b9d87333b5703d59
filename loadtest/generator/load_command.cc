// SPDX-License-Identifier: Apache-2.0
#include "loadtest/generator/load_command.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "client/cli/security_options.h"
#include "client/quire/internal/server_address.h"
#include "client/quire/internal/wire_call.h"
#include "codecs/base/byte_size.h"
#include "codecs/base/duration_text.h"
#include "codecs/base/manual.h"
#include "codecs/base/number_range.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

constexpr uint64_t kRequestCountDefault = 10'000;
// A larger value was a negative number.
constexpr uint64_t kRequestCountMax = 1'000'000'000'000;
constexpr absl::Duration kTimeMin = absl::Milliseconds(1);
constexpr absl::Duration kTimeMax = absl::Hours(2400);
constexpr char kDurationDefault[] = "600s";
constexpr uint32_t kInFlightRandom = 64;
constexpr uint32_t kInFlightStreams = 1;
constexpr uint32_t kInFlightOpen = 10'000;
constexpr uint32_t kInFlightMax = 100'000;
constexpr double kRateMax = 1e6;

std::chrono::milliseconds ToMs(absl::Duration time) {
  return std::chrono::milliseconds(
      std::llround(absl::ToDoubleSeconds(time) * 1000));
}

absl::Status Wrong(absl::string_view what) {
  return absl::InvalidArgumentError(what);
}

// Parses a time that a run can have.
absl::StatusOr<std::chrono::milliseconds> ParseTimeOf(absl::string_view option,
                                                      absl::string_view text) {
  const absl::StatusOr<absl::Duration> time =
      ParseDurationText(text, {.min = kTimeMin, .max = kTimeMax});
  if (!time.ok()) {
    return Wrong(absl::StrCat(option, " ", time.status().message()));
  }
  return ToMs(*time);
}

Manual TheManual() {
  Manual manual;
  manual.version = QUIRE_VERSION;
  manual.exit_codes = {
      {"0", "all answers were right"},
      {"1",
       "a wrong answer, an error, no answer at all, or a server that was "
       "silent for --deadline"},
      {"2", "a mistake in the command line"},
      {"3", "the run could not start, or the report could not be written"},
      {"4", "interrupted; all answers until then were right"}};
  manual.examples = {
      {"quire-loadtest web --source web.raw --duration 30",
       "16 KiB ranges, 64 at a time, compared with the text"},
      {"quire-loadtest web --what documents --rate 2000 --duration 60 "
       "--warmup 10s",
       "2,000 documents per second, whatever the server does"},
      {"quire-loadtest web --mode batch --batch-size 10000 --requests 100000",
       "ten batches, one after the other"},
      {"quire-loadtest web --mode full --in-flight 4",
       "the whole archive, by four scans at once"}};
  manual.environment = {{"QUIRE_SERVER", "default of --server"}};
  AddSecurityEnvironment(manual);
  return manual;
}

}  // namespace

LoadCommandLine::LoadCommandLine(CLI::App& app) {
  app.add_option("ARCHIVE", command_.load.archive, "Name of the archive")
      ->type_name("")
      ->required();
  app.add_option("--server", command_.server,
                 "The server: HOST:PORT or unix:PATH")
      ->type_name("ADDRESS")
      ->envname("QUIRE_SERVER")
      ->capture_default_str();
  AddSecurityOptions(app, command_.security, command_.allow_readable_secrets);
  DeclareWhat(app);
  DeclareHow(app);
  app.add_flag("--json", command_.is_json,
               "Print the report as one JSON object");
  AttachManual(app, TheManual());
}

void LoadCommandLine::DeclareWhat(CLI::App& app) {
  app.add_option("--mode", mode_,
                 "One call for each request (random), streams of many "
                 "requests (batch), or scans of the whole archive (full)")
      ->type_name("MODE")
      ->check(CLI::IsMember({"random", "batch", "full"}))
      ->capture_default_str();
  app.add_option("--what", what_, "Kind of requests")
      ->type_name("KIND")
      ->check(CLI::IsMember({"ranges", "documents"}))
      ->capture_default_str();
  app.add_option("--range-size", range_size_, "Size of the ranges")
      ->type_name("SIZE")
      ->capture_default_str();
  app.add_option("--seed", command_.load.seed,
                 "Seed of the random choice of requests")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--source", command_.source,
                 "Text the archive was built from; without it, contents are "
                 "not compared")
      ->type_name("FILE");
  app.add_option("--index", command_.index,
                 "Documents of --source, in lines of OFFSET<tab>SIZE<tab>ID; "
                 "without it, documents are requested by number")
      ->type_name("FILE");
}

void LoadCommandLine::DeclareHow(CLI::App& app) {
  app.add_option("--requests", request_count_,
                 "Number of requests (default: 10000; with --duration: "
                 "unlimited)")
      ->type_name("N")
      ->check(CountInRange(1, kRequestCountMax));
  app.add_option("--duration", duration_,
                 "Longest time of the run: 30 (seconds), 500ms, 10s, 2m or "
                 "1h30m (default: 600s; full: until all is read)")
      ->type_name("TIME");
  app.add_option("--warmup", warmup_,
                 "Time before the run, excluded from the report")
      ->type_name("TIME");
  app.add_option("--deadline", deadline_,
                 "Silence of the server after which a call is abandoned, and "
                 "the run when all calls are")
      ->type_name("TIME")
      ->capture_default_str();
  app.add_option("--in-flight", in_flight_,
                 "Calls at once (default: 64; batch and full: 1), or with "
                 "--rate at most (default: 10000)")
      ->type_name("N")
      ->check(CountInRange(1, kInFlightMax));
  app.add_option("--batch-size", command_.load.batch_size,
                 "Requests of each batch")
      ->type_name("N")
      ->check(CountInRange(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--rate", command_.load.requests_per_second,
                 "Requests started per second, whatever the server does")
      ->type_name("NUMBER")
      ->check(NumberInRange(0.001, kRateMax));
  app.add_option("--connections", command_.connection_count,
                 "Connections, which calls use in turn")
      ->type_name("N")
      ->check(CountInRange(1, 10'000))
      ->capture_default_str();
  app.add_option("--encoding", encoding_,
                 "Encoding of answers; its tables are fetched first")
      ->type_name("ENCODING")
      ->check(CLI::IsMember({"identity", "fsst", "stored"}))
      ->capture_default_str();
}

absl::Status LoadCommandLine::CompleteWhat(LoadOptions& load) const {
  load.mode = mode_ == "batch"  ? LoadMode::kBatch
              : mode_ == "full" ? LoadMode::kFull
                                : LoadMode::kRandom;
  load.what = what_ == "documents" ? LoadKind::kDocuments : LoadKind::kRanges;
  const absl::StatusOr<uint64_t> size_bytes = ParseByteSize(range_size_);
  if (!size_bytes.ok()) {
    return Wrong(absl::StrCat("--range-size: ", size_bytes.status().message()));
  }
  if (*size_bytes == 0) {
    return Wrong("--range-size must not be 0");
  }
  load.range_size_bytes = *size_bytes;
  return absl::OkStatus();
}

absl::Status LoadCommandLine::CompleteHow(LoadOptions& load) const {
  const bool is_full = load.mode == LoadMode::kFull;
  load.request_count = request_count_;
  if (!request_count_.has_value() && !duration_.has_value() && !is_full) {
    load.request_count = kRequestCountDefault;
  }
  load.duration.reset();
  if (duration_.has_value() || !is_full) {
    QUIRE_ASSIGN_OR_RETURN(
        load.duration,
        ParseTimeOf("--duration", duration_.value_or(kDurationDefault)));
  }
  if (warmup_.has_value()) {
    QUIRE_ASSIGN_OR_RETURN(load.warmup, ParseTimeOf("--warmup", *warmup_));
  }
  QUIRE_ASSIGN_OR_RETURN(load.deadline, ParseTimeOf("--deadline", deadline_));
  load.in_flight =
      in_flight_.value_or(load.requests_per_second.has_value() ? kInFlightOpen
                          : load.mode == LoadMode::kRandom     ? kInFlightRandom
                                                           : kInFlightStreams);
  QUIRE_ASSIGN_OR_RETURN(const EncodingChoice encoding,
                         ParseEncodingChoice(encoding_));
  load.encoding = EncodingOf(encoding);
  return absl::OkStatus();
}

absl::Status LoadCommandLine::CheckTogether(const LoadOptions& load) const {
  if (load.requests_per_second.has_value() && load.mode != LoadMode::kRandom) {
    return Wrong("--rate requires --mode random");
  }
  if (load.mode == LoadMode::kFull) {
    if (load.request_count.has_value() || warmup_.has_value()) {
      return Wrong(
          "--mode full reads the text from end to end: it takes no "
          "--requests or --warmup");
    }
    if (load.what == LoadKind::kDocuments) {
      return Wrong("--mode full reads text, not documents");
    }
  }
  if (!command_.index.empty() && command_.source.empty()) {
    return Wrong("--index requires --source");
  }
  if (!command_.source.empty() && command_.index.empty() &&
      load.what == LoadKind::kDocuments) {
    return Wrong("--what documents with --source requires --index");
  }
  return absl::OkStatus();
}

absl::StatusOr<LoadCommand> LoadCommandLine::Complete() const {
  LoadCommand command = command_;
  const absl::Status address = CheckServerAddress(command.server);
  if (!address.ok()) {
    return Wrong(absl::StrCat("--server: ", address.message()));
  }
  QUIRE_RETURN_IF_ERROR(CompleteWhat(command.load));
  QUIRE_RETURN_IF_ERROR(CompleteHow(command.load));
  QUIRE_RETURN_IF_ERROR(CheckTogether(command.load));
  return command;
}

}  // namespace quire
