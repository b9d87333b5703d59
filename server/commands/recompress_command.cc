// SPDX-License-Identifier: GPL-3.0-or-later
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "codecs/block_codec.h"
#include "server/archive/archive.h"
#include "server/commands/build_run.h"
#include "server/commands/build_summary.h"
#include "server/commands/encoding_options.h"
#include "server/commands/interrupt_flag.h"
#include "server/commands/quired_commands.h"
#include "server/commands/remote_paths.h"
#include "server/commands/subcommand_support.h"
#include "server/ingest/build_pipeline.h"
#include "server/ingest/recompress.h"

namespace quire {
namespace {

namespace fs = std::filesystem;

constexpr char kRecompressFooter[] =
    R"(--codec or --objective is required. Ids, ordinals, attributes and text stay. OUT equals the result of quired
build for the same documents and options, byte for byte; options that are not
given have the defaults of build, not the values of ARCHIVE. Blocks whose encoding
would equal that in ARCHIVE are copied. Damage in ARCHIVE ends the run, and
nothing is left at OUT.

If it is stopped, killed or fails, OUT.partial keeps the finished blocks. Repeat
the command to resume: it checks them, and encodes the rest. Other options or
another archive are refused until --restart discards OUT.partial; blocks of
another version of quired are discarded with a warning.

Examples:
  quired recompress docs.quire -o docs-small.quire --codec xz --block-size 1MiB
  quired recompress docs-small.quire -o docs.quire --codec rlz
  quired recompress docs.quire -o docs.quire --codec rlz:max --replace
  quired recompress s3://crawls/2024/docs.quire -o docs-small.quire --codec xz)";

struct RecompressCommandOptions {
  std::string input;
  StoreArguments store;
  std::string output;
  EncodingOptions encoding;
  bool replace = false;
  bool restart = false;
  bool quiet = false;
};

// The message is for the usage error.
absl::Status CheckPlaces(const RecompressCommandOptions& options) {
  std::error_code error;
  if (fs::equivalent(options.input, OutputDirectory(options.output), error)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--output must be outside the archive, and ", options.output,
        " is inside ", options.input, "; give another path"));
  }
  if (!options.replace &&
      fs::equivalent(options.input, options.output, error)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--output is the archive itself, ", options.input,
        "; give --replace to put the new one in its place, or another path"));
  }
  return absl::OkStatus();
}

// Prints features that the new archive will lack unless requested.
void PrintHints(const Archive& archive, const BuildOptions& build) {
  if (archive.has_layout() && build.reorder == ReorderMode::kOff) {
    std::cerr << "note: the archive stores duplicates once; the new one does "
                 "so only with --reorder\n";
  }
  if (archive.info().has_recipes && !build.inflate) {
    std::cerr << "note: the archive stores compressed members as text; the new "
                 "one does so only with --inflate auto\n";
  }
}

int RunRecompress(RecompressCommandOptions options) {
  // The default codec of a build is no reason to recompress.
  if (options.encoding.codec_option->count() == 0 &&
      options.encoding.objective_option->count() == 0) {
    return ReportUsage("recompress", "--codec or --objective is required");
  }
  options.output = TrimSlashes(std::move(options.output));
  absl::StatusOr<BuildOptions> build = MakeBuildOptions(options.encoding);
  if (!build.ok()) {
    return ReportUsage("recompress", build.status().message());
  }
  const absl::Status places = CheckPlaces(options);
  if (!places.ok()) {
    return ReportUsage("recompress", places.message());
  }
  const absl::Status output =
      CheckOutput(options.output, options.replace, "--replace");
  if (!output.ok()) {
    return ReportFailure(output);
  }
  build->seek_cost_bytes = SeekCostBytes(OutputDirectory(options.output));
  const Stopwatch stopwatch;
  RemotePaths paths(options.store, InterruptFlag::flag());
  const absl::StatusOr<std::string> path = paths.OpenArchive(options.input);
  if (absl::IsInvalidArgument(path.status())) {
    return ReportUsage("recompress", path.status().message());
  }
  const absl::StatusOr<std::shared_ptr<const Archive>> input =
      path.ok() ? Archive::Open(*path) : path.status();
  if (!input.ok()) {
    return ReportFailure(input.status());
  }
  if (!options.quiet) {
    PrintHints(**input, *build);
  }
  BuildRun run(*build, !options.quiet);
  build->resume.on_dropped = [&options] {
    PrintDroppedWarning(options.output);
  };
  build->archive.replace = options.replace;
  build->resume.restart = options.restart;
  const absl::StatusOr<BuildSummary> summary =
      RecompressArchive(options.output, *input, *build);
  if (!summary.ok()) {
    return run.Fail(summary.status(), options.output);
  }
  // The summary describes the actual archive.
  const absl::StatusOr<std::shared_ptr<const Archive>> archive =
      run.ReadBack(options.output);
  if (!archive.ok()) {
    return ReportFailure(archive.status());
  }
  PrintWarnings(*summary, **archive);
  if (!options.quiet) {
    PrintSummary(options.output, *build, *summary, **archive,
                 stopwatch.Seconds());
  }
  return summary->deposits.lost_count == 0 ? kExitGood : kExitFailed;
}

}  // namespace

void AddRecompressCommand(CLI::App& app, int& exit_code) {
  const auto [subcommand, options] = AddSubcommand<RecompressCommandOptions>(
      app, exit_code, "recompress",
      "Build an archive of the same documents with another codec",
      kRecompressFooter, &RunRecompress);
  AddReadArchiveArgument(*subcommand, options->input, options->store);
  subcommand
      ->add_option("-o,--output", options->output,
                   "Directory of the new archive, such as OUT.quire")
      ->type_name("OUT")
      ->required();
  AddEncodingOptions(*subcommand, options->encoding,
                     /*has_defaults=*/false);
  subcommand->add_flag("--replace", options->replace,
                       "Replace the archive at OUT, which may be ARCHIVE");
  subcommand->add_flag("--restart", options->restart,
                       "Discard OUT.partial of an earlier run");
  subcommand->add_flag("-q,--quiet", options->quiet,
                       "No progress and no summary, only warnings and errors");
}

}  // namespace quire
