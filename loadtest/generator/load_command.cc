// SPDX-License-Identifier: Apache-2.0
#include "loadtest/generator/load_command.h"

#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "client/cli/security_options.h"
#include "client/quire/internal/server_address.h"
#include "codecs/base/byte_size.h"
#include "codecs/base/duration_text.h"
#include "codecs/base/manual.h"
#include "codecs/base/number_range.h"
#include "codecs/base/status_macros.h"
#include "loadtest/requests/zipf_sampler.h"

namespace quire {
namespace {

constexpr uint64_t kRequestCountDefault = 10'000;
// A larger value was a negative number.
constexpr uint64_t kRequestCountMax = 1'000'000'000'000;
constexpr absl::Duration kTimeMin = absl::Milliseconds(1);
constexpr absl::Duration kTimeMax = absl::Hours(2400);
constexpr char kDurationDefault[] = "600s";
constexpr uint32_t kInFlightClosed = 64;
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

absl::StatusOr<uint64_t> ParseSizeOf(absl::string_view option,
                                     const std::string& text) {
  const absl::StatusOr<uint64_t> size_bytes = ParseByteSize(text);
  return size_bytes.ok()
             ? size_bytes
             : Wrong(absl::StrCat(option, ": ", size_bytes.status().message()));
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
      {"3", "the run could not start, or a report could not be written"},
      {"4", "interrupted; all answers until then were right"}};
  manual.examples = {
      {"quire-loadtest web --source web.raw --duration 30",
       "16 KiB ranges, 64 at a time, compared with the text"},
      {"quire-loadtest web --what documents --distribution zipf --rate 2000 "
       "--duration 60 --warmup 10s --html report.html",
       "2,000 documents per second, some much more often than others"},
      {"quire-loadtest web --mode batch --batch-size 10000 --requests 100000",
       "ten batches, one after the other"},
      {"quire-loadtest web --mode full --streams 4",
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
  DeclareOutput(app);
  AttachManual(app, TheManual());
}

void LoadCommandLine::DeclareWhat(CLI::App& app) {
  app.add_option("--mode", mode_,
                 "Mode: one call for each request (random), many requests in "
                 "each stream (batch), or the whole archive (full)")
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
  app.add_option("--range-size-min", range_size_min_,
                 "Draw sizes uniformly from this to --range-size")
      ->type_name("SIZE");
  app.add_option("--distribution", distribution_,
                 "Distribution of the requested ranges or documents; the "
                 "popular ones of zipf are spread over the archive")
      ->type_name("NAME")
      ->check(CLI::IsMember({"uniform", "zipf"}))
      ->capture_default_str();
  zipf_option_ = app.add_option("--zipf-exponent", zipf_exponent_,
                                "Exponent of zipf: larger is more uneven")
                     ->type_name("NUMBER")
                     ->check(NumberInRange(0, ZipfSampler::kExponentMax))
                     ->capture_default_str();
  app.add_option("--seed", command_.load.seed,
                 "Seed of the random numbers that requests are drawn from")
      ->type_name("N")
      ->capture_default_str();
  app.add_option(
         "--source", command_.source,
         "The text the archive was built from, in one file; without it, "
         "contents are not compared")
      ->type_name("FILE");
  app.add_option("--index", command_.index,
                 "The documents of --source, as lines of "
                 "OFFSET<tab>SIZE<tab>ID; without it, documents are requested "
                 "by number")
      ->type_name("FILE");
}

void LoadCommandLine::DeclareHow(CLI::App& app) {
  requests_option_ =
      app.add_option("--requests", request_count_,
                     "End after this many (default: 10000; unlimited with "
                     "--duration)")
          ->type_name("N")
          ->check(CountInRange(1, kRequestCountMax));
  duration_option_ =
      app.add_option("--duration", duration_,
                     "End after this time: 30 (seconds), 500ms, 10s, 2m or "
                     "1h30m (default: 600s; full: when all is read)")
          ->type_name("TIME");
  app.add_option("--warmup", warmup_,
                 "Warm-up, excluded from the report: a time (5s, 500ms, 2m) or "
                 "a number of requests (1000)")
      ->type_name("TIME|N");
  app.add_option("--deadline", deadline_,
                 "Abandon a call when the server has sent nothing for this "
                 "time, and the run when this applies to all calls")
      ->type_name("TIME")
      ->capture_default_str();
  in_flight_option_ =
      app.add_option("--in-flight", in_flight_,
                     "random: at most this many calls in flight "
                     "(default: 64; 10000 with --rate)")
          ->type_name("N")
          ->check(CountInRange(1, kInFlightMax));
  app.add_option("--batch-size", command_.load.batch_size,
                 "batch: requests in each stream")
      ->type_name("N")
      ->check(CountInRange(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--streams", command_.load.stream_count,
                 "batch and full: streams at once")
      ->type_name("N")
      ->check(CountInRange(1, 10'000))
      ->capture_default_str();
  rate_option_ =
      app.add_option(
             "--rate", rate_,
             "Start this many requests per second, whatever the server "
             "does; batch: start whole batches, as many requests per second")
          ->type_name("NUMBER")
          ->check(NumberInRange(0.001, kRateMax));
  app.add_option("--arrivals", arrivals_,
                 "Arrivals of --rate: like those of many independent clients "
                 "(poisson), or evenly spaced (constant)")
      ->type_name("NAME")
      ->check(CLI::IsMember({"poisson", "constant"}))
      ->capture_default_str();
  app.add_option("--connections", command_.connection_count,
                 "Connections, which calls use in turn")
      ->type_name("N")
      ->check(CountInRange(1, 10'000))
      ->capture_default_str();
  app.add_option("--encoding", encoding_,
                 "Encoding of answers; its tables are fetched first")
      ->type_name("ENCODING")
      ->check(CLI::IsMember({"identity", "fsst", "stored", "auto"}))
      ->capture_default_str();
}

void LoadCommandLine::DeclareOutput(CLI::App& app) {
  app.add_option("--json", command_.json,
                 "Also write the report to this file as one JSON object; - is "
                 "standard output, which then has nothing else")
      ->type_name("FILE");
  app.add_option("--html", command_.html,
                 "Also write the report to this file as a page with plots")
      ->type_name("FILE");
}

absl::Status LoadCommandLine::CompleteWhat(LoadOptions& load) const {
  load.mode = mode_ == "batch"  ? LoadMode::kBatch
              : mode_ == "full" ? LoadMode::kFull
                                : LoadMode::kRandom;
  load.what = what_ == "documents" ? LoadKind::kDocuments : LoadKind::kRanges;
  load.distribution = distribution_ == "zipf" ? LoadDistribution::kZipf
                                              : LoadDistribution::kUniform;
  load.zipf_exponent = zipf_exponent_;
  QUIRE_ASSIGN_OR_RETURN(load.range_size_bytes_max,
                         ParseSizeOf("--range-size", range_size_));
  load.range_size_bytes_min = load.range_size_bytes_max;
  if (!range_size_min_.empty()) {
    QUIRE_ASSIGN_OR_RETURN(load.range_size_bytes_min,
                           ParseSizeOf("--range-size-min", range_size_min_));
  }
  if (load.range_size_bytes_max == 0) {
    return Wrong("--range-size must not be 0");
  }
  if (load.range_size_bytes_min > load.range_size_bytes_max) {
    return Wrong("--range-size-min is larger than --range-size");
  }
  return absl::OkStatus();
}

absl::Status LoadCommandLine::CompleteHow(LoadOptions& load) const {
  const bool has_requests = requests_option_->count() > 0;
  const bool has_duration = duration_option_->count() > 0;
  const bool is_full = load.mode == LoadMode::kFull;
  load.request_count.reset();
  if (has_requests || (!has_duration && !is_full)) {
    load.request_count = has_requests ? request_count_ : kRequestCountDefault;
  }
  load.duration.reset();
  if (has_duration || !is_full) {
    QUIRE_ASSIGN_OR_RETURN(
        load.duration,
        ParseTimeOf("--duration", has_duration ? duration_ : kDurationDefault));
  }
  QUIRE_ASSIGN_OR_RETURN(load.deadline, ParseTimeOf("--deadline", deadline_));
  uint64_t warmup_request_count = 0;
  if (absl::SimpleAtoi(warmup_, &warmup_request_count)) {
    load.warmup_request_count = warmup_request_count;
  } else if (!warmup_.empty()) {
    // A bare number is not in seconds here.
    double number = 0;
    const absl::StatusOr<absl::Duration> time =
        absl::SimpleAtod(warmup_, &number)
            ? Wrong("a bare number")
            : ParseDurationText(warmup_, {.max = kTimeMax});
    if (!time.ok()) {
      return Wrong(absl::StrCat("--warmup: '", warmup_,
                                "' is neither a number of requests nor a time, "
                                "such as 500ms, 10s, 2m or 1h30m"));
    }
    load.warmup_duration = ToMs(*time);
  }
  load.arrivals = arrivals_ == "constant" ? LoadArrivals::kConstant
                                          : LoadArrivals::kPoisson;
  if (rate_option_->count() > 0) {
    load.requests_per_second = rate_;
  }
  load.in_flight = in_flight_option_->count() > 0 ? in_flight_
                   : load.is_open_loop()          ? kInFlightOpen
                                                  : kInFlightClosed;
  QUIRE_ASSIGN_OR_RETURN(load.encoding, ParseEncodingChoice(encoding_));
  return absl::OkStatus();
}

absl::Status LoadCommandLine::CheckTogether(const LoadOptions& load) const {
  if (load.mode == LoadMode::kFull) {
    if (load.is_open_loop() || load.request_count.has_value() ||
        !warmup_.empty()) {
      return Wrong(
          "--mode full reads the text from end to end: it takes no "
          "--rate, --requests or --warmup");
    }
    if (load.what == LoadKind::kDocuments) {
      return Wrong("--mode full reads text, not documents");
    }
  }
  if (zipf_option_->count() > 0 &&
      load.distribution != LoadDistribution::kZipf) {
    return Wrong("--zipf-exponent requires --distribution zipf");
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
