// SPDX-License-Identifier: GPL-3.0-or-later
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/bytes.h"
#include "codecs/base/number_range.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "server/archive/files/file_io.h"
#include "server/commands/build_inputs.h"
#include "server/commands/encoding_options.h"
#include "server/commands/interrupt_flag.h"
#include "server/commands/quired_commands.h"
#include "server/commands/remote_paths.h"
#include "server/commands/subcommand_support.h"
#include "server/planner/collection_sample.h"
#include "server/planner/plan.h"
#include "server/planner/plan_report.h"
#include "server/storage/base/cgroup.h"

namespace quire {
namespace {

namespace fs = std::filesystem;

constexpr char kPlanFooter[] =
    R"(Builds the archive that quired build --objective would, measures and removes it.
This takes as long as that build. From inputs of more than 1 GiB (four times
--sample-size), builds archives of a sample and its halves instead, in half of that
time or less: whole runs of neighbouring documents, and all releases of documents
that keep their names. Archives and temporary files of a build are below TMPDIR.

--compare predicts five archives: those of all objectives, and with zstd and lz4.
This takes as long as five builds, of which --objective archive is the longest.

Sizes include all files of the archive; the range contains the size in most cases.
Reads are single calls at random offsets with a cold cache; the limit is the part
of the server that bounds them. Drives are models of a hard disk of 5400 rpm and
of a SATA SSD; s3:LATENCY,RATE is an object store. With --compare, rows that no
other beats in both size and reads come first; * marks the recommended one:

  archive   the smallest
  balanced  the smallest that reads at least two thirds as fast as the fastest
  speed     the smallest that reads nearly as fast as the fastest

--machines also prints how many parts to build, and how long that takes;
--price-per-million-requests the GETs, and their price, of a million cold reads and of
a full scan. A sample is kept in memory.

Examples:
  quired plan /usr/share/doc
  quired plan crawl-1.warc.gz --text-size 50TB --disk hdd --price-per-tb 18
  quired plan docs/ --disk s3:30ms,200MB --network 1Gbit --compare)";

struct PlanArguments {
  BuildInputOptions input;
  uint64_t collection_size_bytes = 0;
  std::string disk = "ssd";
  std::string network = "10Gbit";
  uint32_t cores = UsableCores();
  uint32_t machines = 1;
  uint64_t memory_bytes = 0;
  double price_per_tb = 0;
  double price_per_million_requests = 0;
  double budget = 0;
  uint64_t read_size_bytes = 16 * kKiB;
  std::string objective = "balanced";
  bool compare = false;
  uint64_t sample_size_bytes = 256 * kMiB;
  std::string json;
  std::string html;
};

// Parses "10Gbit", "100Mbit", "2.5Gbit" to bytes per second.
absl::StatusOr<double> ParseNetwork(const std::string& text) {
  constexpr std::array kUnits = {std::pair{"gbit", 1e9}, std::pair{"mbit", 1e6},
                                 std::pair{"kbit", 1e3}};
  const std::string lower = absl::AsciiStrToLower(text);
  for (const auto& [unit, bits] : kUnits) {
    double number = 0;
    if (lower.ends_with(unit) &&
        absl::SimpleAtod(absl::string_view(lower).substr(0, lower.size() - 4),
                         &number) &&
        std::isfinite(number) && number > 0 && number * bits <= 1e15) {
      return number * bits / 8;
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--network must be more than 0, such as 100Mbit or 10Gbit, got ",
      QuotedText(text)));
}

absl::StatusOr<PlanOptions> CheckPlanOptions(const PlanArguments& arguments) {
  PlanOptions options;
  QUIRE_ASSIGN_OR_RETURN(options.drive, ParseDrive(arguments.disk));
  QUIRE_ASSIGN_OR_RETURN(options.network_bytes_per_second,
                         ParseNetwork(arguments.network));
  const std::optional<AutoObjective> objective =
      ParseObjective(arguments.objective);
  if (!objective.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--objective must be speed, balanced or archive, got ",
                     QuotedText(arguments.objective)));
  }
  options.objective = *objective;
  if (arguments.budget > 0 && arguments.price_per_tb <= 0) {
    return absl::InvalidArgumentError(
        "--budget needs --price-per-tb, which is more than 0");
  }
  if (arguments.read_size_bytes == 0 || arguments.sample_size_bytes == 0) {
    return absl::InvalidArgumentError(
        "--read-size and --sample-size must be at least 1 byte");
  }
  options.core_count = arguments.cores;
  options.machine_count = arguments.machines;
  options.memory_bytes = arguments.memory_bytes;
  options.price_per_tb = arguments.price_per_tb;
  options.price_per_million_requests = arguments.price_per_million_requests;
  options.budget = arguments.budget;
  options.read_size_bytes = arguments.read_size_bytes;
  return options;
}

// Returns options of `quired build`, each an archive to forecast.
std::vector<std::string> CandidatesOf(const PlanArguments& plan) {
  if (plan.compare) {
    return {"--codec lz4", "--codec zstd", "--objective speed", "",
            "--objective archive"};
  }
  return {plan.objective == EncodingOptions().objective
              ? ""
              : absl::StrCat("--objective ", plan.objective)};
}

// Accepts the options of `quired build`.
absl::StatusOr<PlanCandidate> MakeCandidate(const std::string& arguments,
                                            const PlanArguments& plan,
                                            const std::atomic<bool>* cancel) {
  CLI::App build;
  EncodingOptions options;
  AddEncodingOptions(build, options);
  build.parse(arguments);
  options.threads = plan.cores;
  PlanCandidate candidate;
  candidate.arguments = arguments;
  QUIRE_ASSIGN_OR_RETURN(candidate.build, MakeBuildOptions(options));
  candidate.build.input_size_bytes_max = plan.input.input_size_bytes_max;
  candidate.build.cancel = cancel;
  return candidate;
}

absl::StatusOr<Plan> ReadAndPlan(PlanArguments arguments, RemotePaths& paths,
                                 PlanOptions& options) {
  QUIRE_RETURN_IF_ERROR(OpenRemoteInputs(paths, arguments.input));
  std::error_code error;
  options.work_directory = fs::temp_directory_path(error);
  if (error) {
    return absl::UnavailableError(absl::StrCat(
        "TMPDIR must name a directory for the archives of a plan: ",
        error.message()));
  }
  QUIRE_ASSIGN_OR_RETURN(
      const SourceOptions source_options,
      MakeSourceOptions(arguments.input, options.work_directory));
  QUIRE_ASSIGN_OR_RETURN(
      const std::vector<std::unique_ptr<Source>> sources,
      OpenInputs(arguments.input.inputs, source_options, nullptr));
  if (isatty(STDERR_FILENO) != 0) {
    std::cerr << "reading the inputs\n";
    options.on_progress = [](const std::string& what) {
      std::cerr << "building with " << what << "\n";
    };
  }
  QUIRE_ASSIGN_OR_RETURN(
      const CollectionSample sample,
      CollectionSample::Take(
          sources,
          {.size_bytes = arguments.sample_size_bytes,
           .collection_size_bytes = arguments.collection_size_bytes,
           .input_size_bytes_max = arguments.input.input_size_bytes_max,
           .cancel = InterruptFlag::flag()}));
  if (arguments.collection_size_bytes != 0 &&
      arguments.collection_size_bytes < sample.text_size_bytes()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--text-size must be at least the size of the inputs, ",
                     FormatByteSize(sample.text_size_bytes()), ", got ",
                     FormatByteSize(arguments.collection_size_bytes)));
  }
  std::vector<PlanCandidate> candidates;
  for (const std::string& options_of_build : CandidatesOf(arguments)) {
    QUIRE_ASSIGN_OR_RETURN(
        candidates.emplace_back(),
        MakeCandidate(options_of_build, arguments, InterruptFlag::flag()));
  }
  return MakePlan(sample, candidates, options);
}

// Returns the options of `quired build` that read the inputs as the plan did.
std::vector<std::string> InputOptionsOf(const BuildInputOptions& input) {
  std::vector<std::string> options;
  if (input.expand) {
    options.emplace_back("--expand");
  }
  const auto add = [&options](const char* name, const std::string& value) {
    if (!value.empty()) {
      options.insert(options.end(), {name, value});
    }
  };
  add("--split", input.split);
  add("--id-field", input.line_split.id_field);
  add("--text-field", input.line_split.text_field);
  add("--time-field", input.line_split.time_field);
  for (const std::string& field : input.fields) {
    add("--field", field);
  }
  add("--delimiter", input.delimiter);
  add("--input-size-max", input.input_size_bytes_max.has_value()
                              ? FormatByteSizeExact(*input.input_size_bytes_max)
                              : "");
  add("--window-max", input.window_size_bytes_max != kWindowSizeBytesDefault
                          ? FormatByteSizeExact(input.window_size_bytes_max)
                          : "");
  return options;
}

// Replaces the file at `path`, or a link there, or creates it.
absl::Status WriteReport(const std::string& path, const std::string& text) {
  // Created exclusively: another user's link at this name is an error.
  const std::string aside = absl::StrCat(path, ".", getpid(), ".new");
  QUIRE_ASSIGN_OR_RETURN(FileWriter writer,
                         FileWriter::Create(AT_FDCWD, aside, aside));
  absl::Status status = writer.Append(AsBytes(text));
  if (status.ok()) {
    status = writer.Finish();
  }
  if (status.ok() && std::rename(aside.c_str(), path.c_str()) != 0) {
    status = ErrnoStatus(errno, path, "write");
  }
  if (!status.ok()) {
    unlink(aside.c_str());
  }
  return status;
}

// Errors: Unavailable  a report cannot be written to `path`.
absl::Status CheckReportPath(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (fs::exists(status) && !fs::is_regular_file(status) &&
      !fs::is_symlink(status)) {
    return absl::UnavailableError(absl::StrCat(
        path,
        ": is not a file, and would be replaced; give the path of one, "
        "or --json - for standard output"));
  }
  const std::string directory = fs::path(path).parent_path().string();
  if (!directory.empty() && access(directory.c_str(), W_OK) != 0) {
    return absl::UnavailableError(
        absl::StrCat(path, ": cannot be written to ", directory, ": ",
                     std::generic_category().message(errno)));
  }
  return absl::OkStatus();
}

int RunPlan(const PlanArguments& arguments) {
  absl::StatusOr<PlanOptions> options = CheckPlanOptions(arguments);
  if (!options.ok()) {
    return ReportUsage("plan", options.status().message());
  }
  if (arguments.html == "-") {
    return ReportUsage("plan",
                       "--html must name a file; only --json may be -, for "
                       "standard output");
  }
  // Before minutes of work.
  std::error_code error;
  for (const std::string* const report : {&arguments.json, &arguments.html}) {
    if (fs::is_directory(*report, error)) {
      return ReportUsage(
          "plan",
          absl::StrCat(*report, ": is a directory; give the path of a file"));
    }
    const absl::Status writable = CheckReportPath(*report);
    if (!writable.ok()) {
      return ReportFailure(writable);
    }
  }
  const InterruptFlag interrupt;
  RemotePaths paths(arguments.input.store, InterruptFlag::flag());
  const absl::StatusOr<Plan> plan = ReadAndPlan(arguments, paths, *options);
  if (!plan.ok()) {
    const int exit_code = absl::IsInvalidArgument(plan.status())
                              ? ReportUsage("plan", plan.status().message())
                              : ReportFailure(plan.status());
    interrupt.EndProcessIfSet();
    return exit_code;
  }
  const PlanRequest request = {arguments.input.inputs, *options,
                               InputOptionsOf(arguments.input)};
  for (const auto& [path, text] :
       {std::pair{&arguments.json, &FormatPlanJson},
        std::pair{&arguments.html, &FormatPlanHtml}}) {
    if (path->empty() || *path == "-") {
      continue;
    }
    const absl::Status written = WriteReport(*path, text(request, *plan));
    if (!written.ok()) {
      return ReportFailure(written);
    }
  }
  std::cout << (arguments.json == "-" ? FormatPlanJson(request, *plan)
                                      : FormatPlan(request, *plan));
  return plan->recommended.has_value() ? kExitGood : kExitFailed;
}

}  // namespace

void AddPlanCommand(CLI::App& app, int& exit_code) {
  const auto [plan, arguments] = AddSubcommand<PlanArguments>(
      app, exit_code, "plan",
      "Predict size and speed of an archive, and recommend options of build",
      kPlanFooter, &RunPlan);
  plan->add_option("INPUT", arguments->input.inputs, "Inputs, as for build")
      ->type_name("")
      ->required();
  plan->add_flag(
      "--expand", arguments->input.expand,
      "Expand containers in directories; otherwise each is a document");
  AddSplitOptions(*plan, arguments->input);
  AddInputLimitOptions(*plan, arguments->input);
  AddStoreReadOptions(*plan, arguments->input.store);
  AddByteSizeOption(*plan, "--text-size", arguments->collection_size_bytes,
                    "Size of the full collection; 0: same as the inputs");
  plan->add_option("--disk", arguments->disk,
                   "hdd, ssd, a path on the disk, or s3:LATENCY,RATE")
      ->type_name("DISK")
      ->capture_default_str();
  plan->add_option("--network", arguments->network,
                   "Link of the server, such as 1Gbit")
      ->type_name("RATE")
      ->capture_default_str();
  plan->add_option("--cores", arguments->cores,
                   "Cores of the server, and threads of the builds")
      ->type_name("N")
      ->check(CountInRange(1, 1024))
      ->capture_default_str();
  plan->add_option("--machines", arguments->machines,
                   "Machines that build parts of the archive")
      ->type_name("N")
      ->check(CountInRange(1, 10'000))
      ->capture_default_str();
  AddByteSizeOption(*plan, "--memory", arguments->memory_bytes,
                    "Limit of quired serve; 0: none");
  plan->add_option("--price-per-tb", arguments->price_per_tb,
                   "Euro per terabyte of disk")
      ->type_name("EUR")
      ->check(NumberInRange(1e-6, 1e9));
  plan->add_option("--price-per-million-requests",
                   arguments->price_per_million_requests,
                   "Euro per million GETs from an object store")
      ->type_name("EUR")
      ->check(NumberInRange(1e-6, 1e9));
  plan->add_option("--budget", arguments->budget,
                   "Limit on the price of disks, in euro")
      ->type_name("EUR")
      ->check(NumberInRange(1e-6, 1e12));
  AddByteSizeOption(*plan, "--read-size", arguments->read_size_bytes,
                    "Size of a range that is read");
  plan->add_option("--objective", arguments->objective,
                   "Purpose of the archive: speed, balanced or archive")
      ->type_name("OBJECTIVE")
      ->capture_default_str();
  plan->add_flag("--compare", arguments->compare,
                 "Predict archives of all objectives, of zstd and of lz4");
  AddByteSizeOption(*plan, "--sample-size", arguments->sample_size_bytes,
                    "Sample of inputs of more than four times this size");
  plan->add_option("--json", arguments->json,
                   "Write the plan as JSON; -: to standard output")
      ->type_name("FILE");
  plan->add_option("--html", arguments->html,
                   "Write the plan as a page with a plot")
      ->type_name("FILE");
}

}  // namespace quire
