// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/commands/build_command.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "codecs/automatic/member_choice.h"
#include "codecs/base/byte_size.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "codecs/block_codec.h"
#include "codecs/inflate/inflated_block.h"
#include "codecs/rlz/dictionary_builder.h"
#include "deploy/manual/manual.h"
#include "deploy/manual/number_range.h"
#include "server/archive/archive.h"
#include "server/commands/build_inputs.h"
#include "server/commands/build_summary.h"
#include "server/commands/interrupt_flag.h"
#include "server/commands/progress_meter.h"
#include "server/commands/subcommand_support.h"
#include "server/ingest/build_pipeline.h"
#include "server/ingest/sources/source.h"

namespace quire {
namespace {

namespace fs = std::filesystem;

constexpr char kFooter[] =
    R"(An INPUT is told by its contents: a directory (every regular file in it), a tar
or zip, a WARC (each of these three also compressed), or any other file, which
is one document. - is a tar on standard input. Symbolic links are not followed.
A file's id is its path in the directory, a member's its name in the container
without a leading ./ of it, a WARC record's its URI.

A GLOB is as in rsync: * and ? match within a name, ** across slashes too, [a-z]
one character. It is compared with whole names at any depth, from the start of
the path if it begins with /, and with directories only if it ends in /.

Each record of a WARC is a document, with its headers, as replay needs it. Its id
is the WARC-Target-URI, so a page that was captured several times is several
documents of one id; requests and revisits are, too. A record without one has
its WARC-Record-ID for an id. Record type, date and media type are kept beside
it. quire get prints what the record carries: the newest response of a URL,
without headers.

Examples:
  quired build -o docs.quire /usr/share/doc
  quired build -o crawl.quire --dictionary-size 64MiB crawl-*.warc.gz
  quired build -o all.quire --expand --expand-ids member --keep-going crawls/
  quired build -o site.quire --exclude .git/ --exclude '*.map' --prefix site/ www
  quired build -o mixed.quire --codec auto --objective archive data/
  tar -c directory | quired build -o directory.quire --codec rlz:max -

If it is stopped or fails, nothing is left at OUT. A killed build leaves
OUT.partial, which the next build of the same OUT removes. A directory of that
name that no build left is never removed.)";

struct BuildCommandOptions {
  std::string output;
  BuildInputOptions input;
  std::string codec = "rlz";
  std::string objective;
  uint64_t block_size_bytes = 64 * kKiB;
  uint64_t partition_size_bytes = kPartitionSizeBytesDefault;
  uint64_t dictionary_size_bytes = 16 * kMiB;
  std::string dictionary_method = "coverage";
  std::string reorder = "off";
  std::string inflate = "off";
  uint64_t inflate_member_size_bytes = kInflatedBlockSizeMax;
  bool no_symbol_table = false;
  uint64_t segment_size_bytes = 64 * kGiB;
  uint32_t threads = CoreCount();
  bool force = false;
  bool quiet = false;
  bool partition_size_given = false;
  bool dictionary_size_given = false;
  bool dictionary_method_given = false;
};

absl::StatusOr<DictionaryMethod> ParseDictionaryMethod(
    const std::string& name) {
  if (name == "coverage") {
    return DictionaryMethod::kCoverage;
  }
  if (name == "uniform") {
    return DictionaryMethod::kUniform;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--dictionary-method must be coverage or uniform, got ",
                   QuotedText(name)));
}

absl::StatusOr<bool> ParseInflate(const std::string& name) {
  if (name == "off" || name == "auto") {
    return name == "auto";
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--inflate must be off or auto, got ", QuotedText(name)));
}

absl::StatusOr<ReorderMode> ParseReorderMode(const std::string& name) {
  if (name == "off") {
    return ReorderMode::kOff;
  }
  if (name == "auto") {
    return ReorderMode::kAuto;
  }
  if (name == "dedup") {
    return ReorderMode::kDuplicates;
  }
  if (name == "full") {
    return ReorderMode::kFull;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--reorder must be off, auto, dedup or full, got ", QuotedText(name)));
}

// An option that says how the dictionary is chosen makes no sense without one.
absl::Status CheckUsesDictionary(const CodecSpec& codec, const char* option) {
  const CodecInfo& info = *FindCodec(codec.id);
  if (!info.needs_dictionary) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, " needs a codec with a dictionary, and codec ",
                     info.name, " has none; leave the option out"));
  }
  return absl::OkStatus();
}

// Puts the objective of codec auto into `codec`, as its level.
absl::Status CheckObjective(const BuildCommandOptions& options,
                            CodecSpec& codec) {
  if (options.objective.empty()) {
    return absl::OkStatus();
  }
  if (options.codec != "auto") {
    return absl::InvalidArgumentError(
        absl::StrCat("--objective needs --codec auto, without a level, got ",
                     QuotedText(options.codec)));
  }
  constexpr std::array kObjectives = {
      std::pair("speed", AutoObjective::kSpeed),
      std::pair("balanced", AutoObjective::kBalanced),
      std::pair("archive", AutoObjective::kArchive)};
  for (const auto& [name, objective] : kObjectives) {
    if (options.objective == name) {
      codec.level = static_cast<int>(objective);
      return absl::OkStatus();
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--objective must be speed, balanced or archive, got ",
                   QuotedText(options.objective)));
}

// Puts the partition size into `codec`.
absl::Status CheckPartitionSize(const BuildCommandOptions& options,
                                CodecSpec& codec) {
  const CodecInfo& info = *FindCodec(codec.id);
  if (!info.has_partitions()) {
    return options.partition_size_given
               ? absl::InvalidArgumentError(absl::StrCat(
                     "--partition-size needs a codec with partitions, like ",
                     "zlib-pex, and codec ", info.name,
                     " has none; leave the option out"))
               : absl::OkStatus();
  }
  if (!options.partition_size_given) {
    FitPartitions(options.block_size_bytes, codec);
    return absl::OkStatus();
  }
  const uint64_t size = options.partition_size_bytes;
  if (!IsPartitionSize(size) || size > options.block_size_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--partition-size must be a power of two from 4KiB to 256KiB, and at ",
        "most --block-size, which is ",
        FormatByteSizeExact(options.block_size_bytes), "; got ",
        FormatByteSizeExact(size)));
  }
  codec.partition_size_bytes = static_cast<uint32_t>(size);
  return absl::OkStatus();
}

// What can be said before anything is read. The message is for the usage error.
absl::StatusOr<CodecSpec> CheckOptions(const BuildCommandOptions& options) {
  QUIRE_ASSIGN_OR_RETURN(CodecSpec codec, ParseCodecSpec(options.codec));
  const uint64_t block_size = options.block_size_bytes;
  if (block_size < 4 * kKiB || block_size > kBlockSizeBytesMax ||
      (block_size & (block_size - 1)) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--block-size must be a power of two from 4KiB to 1MiB, like 16KiB or ",
        "64KiB, got ", FormatByteSizeExact(block_size)));
  }
  QUIRE_RETURN_IF_ERROR(CheckObjective(options, codec));
  QUIRE_RETURN_IF_ERROR(CheckPartitionSize(options, codec));
  if (options.dictionary_size_given) {
    QUIRE_RETURN_IF_ERROR(CheckUsesDictionary(codec, "--dictionary-size"));
  }
  if (options.dictionary_method_given) {
    QUIRE_RETURN_IF_ERROR(CheckUsesDictionary(codec, "--dictionary-method"));
  }
  QUIRE_RETURN_IF_ERROR(
      ParseDictionaryMethod(options.dictionary_method).status());
  QUIRE_RETURN_IF_ERROR(ParseReorderMode(options.reorder).status());
  QUIRE_RETURN_IF_ERROR(ParseInflate(options.inflate).status());
  if (options.inflate_member_size_bytes == 0 ||
      options.inflate_member_size_bytes > kInflatedBlockSizeMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("--inflate-member-size must be 1 byte to ",
                     FormatByteSizeExact(kInflatedBlockSizeMax), ", got ",
                     FormatByteSizeExact(options.inflate_member_size_bytes)));
  }
  if (options.dictionary_size_bytes == 0 ||
      options.dictionary_size_bytes > kDictionarySizeBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--dictionary-size must be at least 1 byte and less than ",
        "2GiB, got ", FormatByteSizeExact(options.dictionary_size_bytes)));
  }
  if (options.segment_size_bytes == 0) {
    return absl::InvalidArgumentError(
        "--segment-size must be at least 1 byte, got 0");
  }
  return codec;
}

// An archive that is written into its own input would become part of itself.
absl::Status CheckOutputOutsideInputs(const BuildCommandOptions& options,
                                      const std::string& output_directory) {
  std::error_code error;
  const fs::path output = fs::canonical(output_directory, error) /
                          fs::path(options.output).filename();
  for (const std::string& input : options.input.inputs) {
    if (input == "-" || !fs::is_directory(input, error)) {
      continue;
    }
    const fs::path directory = fs::canonical(input, error);
    const auto mismatch = std::mismatch(directory.begin(), directory.end(),
                                        output.begin(), output.end());
    if (mismatch.first == directory.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--output must be outside all inputs, and ", options.output,
          " is inside the input ", input,
          ", so the archive would become part of itself; give another path"));
    }
  }
  return absl::OkStatus();
}

// Failures that would otherwise be found only after reading all inputs.
absl::Status CheckOutput(const BuildCommandOptions& options,
                         const std::string& output_directory) {
  std::error_code error;
  if (!fs::is_directory(output_directory, error)) {
    return absl::NotFoundError(absl::StrCat(
        output_directory,
        ": no such directory to put the archive into; create it first"));
  }
  if (access(output_directory.c_str(), W_OK) != 0) {
    return absl::PermissionDeniedError(
        absl::StrCat(output_directory,
                     ": this user must be able to write to it and is not; "
                     "give --output a path elsewhere"));
  }
  if (!options.force && fs::exists(fs::symlink_status(options.output, error))) {
    return absl::AlreadyExistsError(
        absl::StrCat(options.output,
                     " exists; give --force to replace it, or another path"));
  }
  return absl::OkStatus();
}

ProgressState ToProgressState(const BuildProgress& progress) {
  ProgressState state;
  state.done = progress.done_bytes;
  state.total = progress.total_bytes;
  switch (progress.phase) {
    case BuildPhase::kCount:
      state.phase = "counting";
      break;
    case BuildPhase::kReorder:
      state.phase = "reordering";
      break;
    case BuildPhase::kInflate:
      state.phase = "inflating members";
      break;
    case BuildPhase::kDictionary:
      state.phase = "choosing the dictionary";
      break;
    case BuildPhase::kSymbolTable:
      state.phase = "training the symbol table";
      break;
    case BuildPhase::kIndex:
      state.phase = "indexing the dictionary";
      break;
    case BuildPhase::kEncode:
      state.phase = "encoding";
      state.stored_bytes = progress.stored_bytes;
      break;
    case BuildPhase::kFinish:
      state.phase = "finishing";
      break;
  }
  return state;
}

using Sources = std::vector<std::unique_ptr<Source>>;

absl::StatusOr<BuildSummary> Build(const BuildCommandOptions& options,
                                   const CodecSpec& codec,
                                   const Sources& sources, InputReport& report,
                                   const InterruptFlag& interrupt,
                                   ProgressMeter* meter) {
  BuildOptions build;
  build.archive.codec = codec;
  build.archive.block_size_bytes =
      static_cast<uint32_t>(options.block_size_bytes);
  build.archive.replace = options.force;
  build.dictionary_size_bytes = options.dictionary_size_bytes;
  QUIRE_ASSIGN_OR_RETURN(build.dictionary_method,
                         ParseDictionaryMethod(options.dictionary_method));
  QUIRE_ASSIGN_OR_RETURN(build.reorder, ParseReorderMode(options.reorder));
  QUIRE_ASSIGN_OR_RETURN(build.inflate, ParseInflate(options.inflate));
  build.inflate_member_size_bytes_max = options.inflate_member_size_bytes;
  build.symbol_table = !options.no_symbol_table;
  build.segment_size_bytes = options.segment_size_bytes;
  build.input_size_bytes_max = options.input.input_size_bytes_max;
  build.failures = report.failures();
  build.on_note = report.listener();
  build.threads = options.threads;
  build.cancel = interrupt.flag();
  if (meter != nullptr) {
    build.on_progress = [meter](const BuildProgress& progress) {
      meter->Update(ToProgressState(progress));
    };
  }
  return BuildArchive(options.output, sources, build);
}

int RunBuild(BuildCommandOptions options) {
  while (options.output.size() > 1 && options.output.back() == '/') {
    options.output.pop_back();
  }
  const absl::StatusOr<CodecSpec> codec = CheckOptions(options);
  if (!codec.ok()) {
    return ReportUsage("build", codec.status().message());
  }
  std::string output_directory = fs::path(options.output).parent_path();
  if (output_directory.empty()) {
    output_directory = ".";
  }
  const absl::StatusOr<SourceOptions> source_options =
      MakeSourceOptions(options.input, output_directory);
  if (!source_options.ok()) {
    return ReportUsage("build", source_options.status().message());
  }
  const absl::Status outside =
      CheckOutputOutsideInputs(options, output_directory);
  if (!outside.ok()) {
    return ReportUsage("build", outside.message());
  }
  const absl::Status output = CheckOutput(options, output_directory);
  if (!output.ok()) {
    return ReportFailure(output);
  }
  const auto start = std::chrono::steady_clock::now();
  // Until here nothing has a name on disk, not even what came from standard
  // input, so a signal may end the process on the spot.
  InputReport report(options.input);
  const absl::StatusOr<Sources> sources =
      OpenInputs(options.input.inputs, *source_options, report.failures());
  if (!sources.ok()) {
    return ReportFailure(sources.status());
  }
  const InterruptFlag interrupt;
  std::optional<ProgressMeter> meter;
  if (!options.quiet && !options.input.verbose && isatty(STDERR_FILENO) != 0) {
    meter.emplace(std::cerr, &std::chrono::steady_clock::now);
  }
  const absl::StatusOr<BuildSummary> summary =
      Build(options, *codec, *sources, report, interrupt,
            meter.has_value() ? &*meter : nullptr);
  meter.reset();
  if (!summary.ok()) {
    const int exit_code = ReportFailure(summary.status());
    interrupt.EndProcessIfSet();
    return exit_code;
  }
  // Reads all but the blocks back, so that what is reported is what is there.
  const absl::StatusOr<std::shared_ptr<const Archive>> archive =
      Archive::Open(options.output);
  if (!archive.ok()) {
    return ReportFailure(archive.status());
  }
  report.PrintWarnings(summary->skipped);
  PrintWarnings(*summary, **archive);
  if (!options.quiet) {
    const std::chrono::duration<double> elapsed =
        std::chrono::steady_clock::now() - start;
    PrintSummary(options.output, *summary, **archive, elapsed.count());
    report.PrintHints(summary->skipped);
  }
  const bool is_whole =
      report.failures() == nullptr || report.failures()->count() == 0;
  return is_whole ? kExitGood : kExitFailed;
}

std::vector<std::string> CodecNames() {
  std::vector<std::string> names;
  for (const CodecInfo& codec : AllCodecs()) {
    names.emplace_back(codec.name);
  }
  return names;
}

}  // namespace

void AddBuildCommand(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<BuildCommandOptions>();
  CLI::App* const subcommand =
      app.add_subcommand("build", "Build an archive from documents");
  subcommand->footer(kFooter);
  subcommand
      ->add_option("-o,--output", options->output,
                   "Directory of the archive, such as OUT.quire")
      ->type_name("OUT")
      ->required();
  AddInputOptions(*subcommand, options->input);
  CLI::Option* const codec = subcommand->add_option(
      "--codec", options->codec,
      absl::StrCat(
          "How blocks are compressed: ", absl::StrJoin(CodecNames(), ", "),
          "; level fast, default, max or a number"));
  codec->type_name("NAME[:LEVEL]")->capture_default_str();
  OfferValues(*codec, CodecNames());
  CLI::Option* const objective = subcommand->add_option(
      "--objective", options->objective,
      "Of codec auto: what it chooses for. speed: most documents per second; "
      "balanced, the default: small, and quick to read; archive: smallest. The "
      "same as levels 1, 2 and 3");
  objective->type_name("NAME");
  OfferValues(*objective, {"speed", "balanced", "archive"});
  AddByteSizeOption(*subcommand, "--block-size", options->block_size_bytes,
                    "Text in a block, a power of two from 4KiB to 1MiB: large "
                    "ones compress better, small ones read faster");
  CLI::Option* const partition_size = AddByteSizeOption(
      *subcommand, "--partition-size", options->partition_size_bytes,
      "Of codecs whose names end in -pex: text in each part of a block that is "
      "decoded without the rest, a power of two from 4KiB to 256KiB");
  CLI::Option* const dictionary_size = AddByteSizeOption(
      *subcommand, "--dictionary-size", options->dictionary_size_bytes,
      "Text that blocks are compressed against; serving keeps it in memory");
  CLI::Option* const dictionary_method =
      subcommand
          ->add_option("--dictionary-method", options->dictionary_method,
                       "How that text is chosen: coverage takes what repeats "
                       "most, and reads the inputs twice for it; uniform takes "
                       "samples at regular intervals")
          ->type_name("METHOD")
          ->capture_default_str();
  CLI::Option* const reorder =
      subcommand
          ->add_option(
              "--reorder", options->reorder,
              "What is stored otherwise than in the order of the documents, "
              "which does not change: off, nothing; dedup, duplicates of 512 "
              "bytes and more are stored once; auto, those of 16 KiB and more, "
              "so that few ranges touch further blocks; full, as dedup, and "
              "similar chunks lie together, for codecs without a dictionary: "
              "reads touch many more blocks. Needs space next to OUT for the "
              "text, full for twice the text")
          ->type_name("MODE")
          ->capture_default_str();
  OfferValues(*reorder, {"off", "auto", "dedup", "full"});
  CLI::Option* const inflate =
      subcommand
          ->add_option(
              "--inflate", options->inflate,
              "Bytes inside documents that zlib or gzip compressed, such as "
              "gzip files and the streams of PDF: auto, with codec rlz, stores "
              "their text, from which reading makes the same bytes again; off "
              "stores them as they are. Needs space next to OUT for the text")
          ->type_name("MODE")
          ->capture_default_str();
  OfferValues(*inflate, {"auto", "off"});
  AddByteSizeOption(*subcommand, "--inflate-member-size",
                    options->inflate_member_size_bytes,
                    "With --inflate auto, members of more text than this stay "
                    "as they are, as a read of any part of one makes all of it "
                    "again; at most 1MiB");
  subcommand->add_flag("--no-symbol-table", options->no_symbol_table,
                       "No table for answers in FSST; it would take 2 KB");
  AddByteSizeOption(*subcommand, "--segment-size", options->segment_size_bytes,
                    "Text after which a new segment file starts");
  subcommand
      ->add_option("--threads", options->threads,
                   "Threads that compress; the archive does not depend on it")
      ->type_name("N")
      ->check(CountInRange(1, 1024))
      ->capture_default_str();
  subcommand->add_flag("--force", options->force, "Replace the archive at OUT");
  subcommand->add_flag("-q,--quiet", options->quiet,
                       "No progress and no summary, only warnings and errors");
  subcommand->callback([options, partition_size, dictionary_size,
                        dictionary_method, &exit_code] {
    options->partition_size_given = partition_size->count() > 0;
    options->dictionary_size_given = dictionary_size->count() > 0;
    options->dictionary_method_given = dictionary_method->count() > 0;
    exit_code = RunBuild(*options);
  });
}

}  // namespace quire
