// SPDX-License-Identifier: GPL-3.0-or-later
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/number_range.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "server/archive/archive.h"
#include "server/archive/files/file_io.h"
#include "server/archive/format/archive_format.h"
#include "server/commands/archive_upload.h"
#include "server/commands/build_inputs.h"
#include "server/commands/build_run.h"
#include "server/commands/build_summary.h"
#include "server/commands/encoding_options.h"
#include "server/commands/interrupt_flag.h"
#include "server/commands/quired_commands.h"
#include "server/commands/remote_paths.h"
#include "server/commands/subcommand_support.h"
#include "server/ingest/append.h"
#include "server/ingest/build_pipeline.h"
#include "server/ingest/resume_parameters.h"
#include "server/ingest/sources/source.h"
#include "server/storage/remote/store_address.h"

namespace quire {
namespace {

constexpr char kBuildFooter[] =
    R"(The contents determine the kind of an INPUT: a directory (every regular file in
it), a tar or zip, a WARC or ARC (each of these four also compressed), a WACZ (the
WARCs in it, in its order), or any other file, which is one
document. - is a tar on standard input, with --split any file. Symbolic links are not
followed.
A file's id is its path in the directory, a member's its name in the container
without a leading ./ of it, the record's of a WARC or ARC its URI.

A GLOB has rsync's syntax: * and ? match within a name, ** across slashes too,
[a-z] one character. It matches whole names at any depth; from the start of the
path if it begins with /, and only directories if it ends in /.

Each record of a WARC is a document, including its headers, which replay needs.
Its id is the WARC-Target-URI, so captures, requests and revisits of a page share
one id; a record without a URI has its WARC-Record-ID as id. Record type, date
and media type are attributes. quire get prints the payload of the newest
response of a URL, without headers.

--objective sets each option of the encoding that is not given. --reorder dedup stores
duplicates once, full also moves similar text together, and auto chooses what makes
the archive clearly smaller; ids and offsets stay. It needs space next to OUT: for the
text, full for twice and auto for three times the text, --inflate auto once more.

With --split lines, each line is a document: its bytes include the line end,
so that the lines of a file together are the file. With --id-field a file whose
first character is { is JSON Lines, any other a CSV with a header line. A CSV
record with line ends in quotes is one document. Records without the field keep
the id FILE:LINE and are named; if no record of an input has it, the build fails.

Examples:
  quired build -o docs.quire /usr/share/doc
  quired build -o crawl.quire crawl-*.warc.gz
  quired build -o all.quire --expand --expand-ids member --keep-going crawls/
  quired build -o site.quire --exclude .git/ --exclude '*.map' --prefix site/ www
  quired build -o kept.quire --objective archive data/
  quired build -o logs.quire --split lines /var/log/nginx
  quired build -o facts.quire --split lines --id-field key facts.jsonl.zst
  tar -c directory | quired build -o directory.quire --codec rlz:max -

A build that is stopped or fails leaves nothing at OUT. A killed build leaves
OUT.partial, which the next build of the same OUT removes. A directory of that
name that no build created is never removed.

With --resume, OUT.partial stays if the build is stopped, killed or fails, and the
same command resumes it. It keeps the dictionary and all whole blocks; it repeats the
passes that count, reorder and train, and checks the blocks. The archive equals that
of an uninterrupted build, byte for byte. Other options are refused, and so are inputs
whose documents changed, until --restart discards OUT.partial.

With -o s3://BUCKET/PREFIX the archive goes to a bucket: each segment is written below
TMPDIR, uploaded and removed, MANIFEST comes last, and nothing there is replaced. The
same command again, after a kill, uploads what is missing. Inputs may be URLs, too.

With --like, OUT is one of several parts of an archive, built on any machine. Its codec,
level, block size, dictionary and symbol table are those of LIKE, and its segments are
numbered from --first-segment. quired join makes one archive of the parts if no two have
segments of one number: leave room, as each --segment-size of text is a segment. A part
that is killed is built again; the others stay. --reorder and --inflate apply to the
text of each part alone.

  quired dictionary -o like.quire crawls/
  quired build --like like.quire --first-segment 0 -o part-0.quire crawls/0
  quired build --like like.quire --first-segment 100 -o part-1.quire crawls/1
  quired join -o all.quire part-0.quire part-1.quire

In a bucket, parts are called PREFIX/parts/NAME, and their segments lie in PREFIX.)";

constexpr char kDictionaryFooter[] =
    R"(OUT is an archive without documents, with the codec, level, block size, dictionary and
symbol table that quired build would choose for the inputs. quired build --like OUT
builds parts of one archive with it, on any number of machines, and quired join joins
them: see quired build --help. Their text need not be that of the inputs. A dictionary
of text unlike theirs makes them larger, and nothing else.

All inputs are read several times. For a collection that is too large for that, give a
sample of it, and --dictionary-size, as its default follows the size of the inputs.

Examples:
  quired dictionary -o like.quire crawls/
  quired dictionary -o like.quire --dictionary-size 64MiB crawl-*7.warc.gz)";

struct BuildCommandOptions {
  const char* subcommand = "build";
  std::string output;
  // Archive whose encoding is used; empty: one is chosen.
  std::string like;
  std::optional<uint32_t> first_segment;
  BuildInputOptions input;
  EncodingOptions encoding;
  bool force = false;
  bool resume = false;
  bool restart = false;
  bool quiet = false;
};

// The output of a build.
struct BuildOutput {
  // As given.
  std::string name;
  // The archive on this machine.
  std::string path;
  // Null unless the archive goes to a bucket.
  std::unique_ptr<ArchiveUpload> upload = nullptr;
  std::unique_ptr<UploadStage> stage = nullptr;
};

using Sources = std::vector<std::unique_ptr<Source>>;

// Sets the options of a build that can be resumed.
// Errors: InvalidArgument  for the usage error.
absl::Status SetResume(const BuildCommandOptions& options,
                       BuildOptions& build) {
  if (!options.resume) {
    return options.restart ? absl::InvalidArgumentError(
                                 "--restart is an option of --resume; a build "
                                 "without it always starts over")
                           : absl::OkStatus();
  }
  if (std::ranges::find(options.input.inputs, "-") !=
      options.input.inputs.end()) {
    return absl::InvalidArgumentError(
        "--resume needs inputs that a later run can read again, got - for "
        "standard input; give a file");
  }
  // Ids and sizes of documents say the rest.
  const LineSplit& split = options.input.line_split;
  build.resume.parameters = absl::StrCat(
      EncodingParameters(build), "split ",
      options.input.split.empty() ? "off" : options.input.split, ", id field ",
      QuotedText(split.id_field), ", text field ", QuotedText(split.text_field),
      options.input.delimiter.empty()
          ? ""
          : absl::StrCat(", delimiter ", QuotedText(options.input.delimiter)),
      "\n");
  // Fields are not in blocks, but a build that resumes is the same build.
  if (!split.time_field.empty()) {
    absl::StrAppend(&build.resume.parameters, "time field ",
                    QuotedText(split.time_field), "\n");
  }
  for (const std::string& field : options.input.fields) {
    absl::StrAppend(&build.resume.parameters, "field ", QuotedText(field),
                    "\n");
  }
  if (build.deposits != DepositMode::kAuto) {
    absl::StrAppend(&build.resume.parameters, "deposited files ",
                    build.deposits == DepositMode::kOff ? "off" : "all", "\n");
  }
  build.resume.describes_inputs = true;
  build.resume.restart = options.restart;
  build.resume.on_dropped = [output = options.output] {
    PrintDroppedWarning(output);
  };
  return absl::OkStatus();
}

// Errors: InvalidArgument  for the usage error.
absl::Status CheckLike(const BuildCommandOptions& options) {
  if (options.like.empty()) {
    return options.first_segment.has_value()
               ? absl::InvalidArgumentError(
                     "--first-segment is an option of --like; without it, "
                     "segments are numbered from 0")
               : absl::OkStatus();
  }
  if (options.resume) {
    return absl::InvalidArgumentError(
        "--resume must not be given with --like: a killed part starts over; "
        "build more and smaller parts");
  }
  return CheckKeptEncoding(options.encoding.kept(),
                           "the encoding is that of the archive of --like");
}

bool IsForDictionary(const BuildCommandOptions& options) {
  return options.subcommand != absl::string_view("build");
}

absl::StatusOr<BuildSummary> Build(const BuildCommandOptions& options,
                                   const Sources& sources,
                                   const BuildOptions& build) {
  if (IsForDictionary(options)) {
    return BuildEmptyArchive(options.output, sources, build);
  }
  return options.like.empty() ? BuildArchive(options.output, sources, build)
                              : BuildLike(options.like, options.first_segment,
                                          options.output, sources, build);
}

// Makes local paths of the options' URLs. That of --output gets a stage.
// Errors: InvalidArgument  for the usage error.
absl::StatusOr<BuildOutput> OpenRemote(RemotePaths& paths,
                                       BuildCommandOptions& options) {
  BuildOutput output = {.name = options.output, .path = options.output};
  if (IsStoreUrl(options.output)) {
    if (options.force) {
      return absl::InvalidArgumentError(
          "--force must not be given with a URL: servers may read the archive; "
          "give another prefix");
    }
    QUIRE_ASSIGN_OR_RETURN(
        output.upload, ArchiveUpload::Open(options.output, options.input.store,
                                           InterruptFlag::flag()));
    QUIRE_RETURN_IF_ERROR(output.upload->CheckIsNew());
    QUIRE_ASSIGN_OR_RETURN(output.stage,
                           UploadStage::Make(output.upload->address()));
    output.path = output.stage->archive_path();
    options.output = output.path;
    // An archive that a killed run did not finish to upload.
    options.force = true;
  }
  if (!options.like.empty()) {
    QUIRE_ASSIGN_OR_RETURN(options.like, paths.OpenArchive(options.like));
  }
  QUIRE_RETURN_IF_ERROR(OpenRemoteInputs(paths, options.input));
  return output;
}

// Uploads each segment, and removes it unless a later run may resume.
void SetUpload(const BuildOutput& output, bool may_resume,
               BuildOptions& build) {
  if (output.upload == nullptr) {
    return;
  }
  build.archive.on_segment = [upload = output.upload.get(), may_resume](
                                 const std::string& directory,
                                 const std::string& name) -> absl::Status {
    QUIRE_RETURN_IF_ERROR(upload->AddFile(directory, name));
    const std::string path = absl::StrCat(directory, "/", name);
    return may_resume || unlink(path.c_str()) == 0
               ? absl::OkStatus()
               : ErrnoStatus(errno, path, "remove");
  };
}

// Uploads the rest of the archive. Returns the path to read it back from.
absl::StatusOr<std::string> FinishOutput(const BuildOutput& output,
                                         RemotePaths& paths) {
  if (output.upload == nullptr) {
    return output.path;
  }
  QUIRE_RETURN_IF_ERROR(output.upload->AddFiles(output.path));
  QUIRE_RETURN_IF_ERROR(output.upload->Publish(output.path, /*replaced=*/""));
  return paths.OpenArchive(output.name);
}

// Kept blocks are not compared with the text again, and a program may have
// given other rows for them. Errors: InvalidArgument  an input is Parquet.
absl::Status CheckResumable(const Sources& sources) {
  for (const std::unique_ptr<Source>& source : sources) {
    if (absl::string_view(source->kind()) == "parquet") {
      return absl::InvalidArgumentError(absl::StrCat(
          "--resume needs inputs that a later run can read again, got ",
          source->name(),
          ", whose rows a program writes; build it without --resume"));
    }
  }
  return absl::OkStatus();
}

int ReportOption(const char* subcommand, const absl::Status& status) {
  return absl::IsInvalidArgument(status)
             ? ReportUsage(subcommand, status.message())
             : ReportFailure(status);
}

int BuildAndPrint(const BuildCommandOptions& options, BuildOutput& output,
                  const SourceOptions& source_options, BuildOptions& build,
                  RemotePaths& paths) {
  const Stopwatch stopwatch;
  InputReport report(options.input);
  const absl::StatusOr<Sources> sources =
      OpenInputs(options.input.inputs, source_options, report.failures());
  if (!sources.ok()) {
    return ReportFailure(sources.status());
  }
  const absl::Status resumable =
      options.resume ? CheckResumable(*sources) : absl::OkStatus();
  if (!resumable.ok()) {
    return ReportUsage(options.subcommand, resumable.message());
  }
  BuildRun run(build, !options.quiet && !options.input.verbose);
  build.archive.replace = options.force;
  build.input_size_bytes_max = options.input.input_size_bytes_max;
  build.failures = report.failures();
  build.on_note = report.listener();
  SetUpload(output, options.resume, build);
  const absl::StatusOr<BuildSummary> summary = Build(options, *sources, build);
  const absl::StatusOr<std::string> path =
      summary.ok() ? FinishOutput(output, paths) : summary.status();
  if (output.stage != nullptr && summary.ok()) {
    output.stage->RemoveArchive();
  }
  // A signal may end the process below.
  output.stage.reset();
  if (!path.ok()) {
    return run.Fail(path.status(), options.resume ? options.output : "");
  }
  // The summary describes the actual archive.
  const absl::StatusOr<std::shared_ptr<const Archive>> archive =
      run.ReadBack(*path);
  if (!archive.ok()) {
    return ReportFailure(archive.status());
  }
  report.PrintWarnings(summary->skipped);
  PrintWarnings(*summary, **archive);
  if (!options.quiet) {
    if (IsForDictionary(options)) {
      PrintDictionary(output.name, *summary, **archive, stopwatch.Seconds());
    } else {
      PrintSummary(output.name, build, *summary, **archive,
                   stopwatch.Seconds());
    }
    if (output.upload != nullptr) {
      output.upload->PrintSummary();
    }
    report.PrintHints(summary->skipped);
  }
  const bool is_whole =
      (report.failures() == nullptr || report.failures()->count() == 0) &&
      summary->deposits.lost_count == 0;
  return is_whole ? kExitGood : kExitFailed;
}

int RunBuild(BuildCommandOptions options) {
  options.output = TrimSlashes(std::move(options.output));
  const absl::Status like = CheckLike(options);
  if (!like.ok()) {
    return ReportUsage(options.subcommand, like.message());
  }
  RemotePaths paths(options.input.store, InterruptFlag::flag());
  absl::StatusOr<BuildOutput> remote = OpenRemote(paths, options);
  if (!remote.ok()) {
    return ReportOption(options.subcommand, remote.status());
  }
  absl::StatusOr<BuildOptions> build = MakeBuildOptions(options.encoding);
  if (!build.ok()) {
    return ReportUsage(options.subcommand, build.status().message());
  }
  const std::string output_directory = OutputDirectory(options.output);
  const absl::StatusOr<SourceOptions> source_options =
      MakeSourceOptions(options.input, output_directory);
  if (!source_options.ok()) {
    return ReportUsage(options.subcommand, source_options.status().message());
  }
  const absl::Status outside = CheckOutsideInputs(
      "--output", options.output, output_directory, options.input);
  if (!outside.ok()) {
    return ReportUsage(options.subcommand, outside.message());
  }
  const absl::Status output =
      CheckOutput(options.output, options.force, "--force");
  if (!output.ok()) {
    return ReportOption(options.subcommand, output);
  }
  build->deposits = options.input.deposits();
  build->seek_cost_bytes = SeekCostBytes(output_directory);
  const absl::Status resume = SetResume(options, *build);
  if (!resume.ok()) {
    return ReportUsage(options.subcommand, resume.message());
  }
  return BuildAndPrint(options, *remote, *source_options, *build, paths);
}

void AddCommonOptions(CLI::App& subcommand, BuildCommandOptions& options) {
  subcommand
      .add_option("-o,--output", options.output,
                  "Directory of the archive, or s3://BUCKET/PREFIX")
      ->type_name("OUT")
      ->required();
  AddInputOptions(subcommand, options.input);
  AddEncodingOptions(subcommand, options.encoding);
  subcommand.add_flag("--force", options.force, "Replace the archive at OUT");
  subcommand.add_flag("-q,--quiet", options.quiet,
                      "No progress and no summary, only warnings and errors");
}

}  // namespace

void AddBuildCommand(CLI::App& app, int& exit_code) {
  const auto [subcommand, options] = AddSubcommand<BuildCommandOptions>(
      app, exit_code, "build", "Build an archive from documents", kBuildFooter,
      &RunBuild);
  AddCommonOptions(*subcommand, *options);
  subcommand
      ->add_option("--like", options->like,
                   "Archive whose encoding OUT gets, as a part of a larger one")
      ->type_name("LIKE");
  subcommand
      ->add_option("--first-segment", options->first_segment,
                   "Number of the first segment; default: the next of LIKE")
      ->type_name("N")
      ->check(CountInRange(0, kSegmentNumberMax));
  subcommand->add_flag("--resume", options->resume,
                       "Keep OUT.partial on failure, or continue that of an "
                       "earlier run");
  subcommand->add_flag("--restart", options->restart,
                       "Discard OUT.partial of an earlier run, for --resume");
}

void AddDictionaryCommand(CLI::App& app, int& exit_code) {
  const auto [subcommand, options] = AddSubcommand<BuildCommandOptions>(
      app, exit_code, "dictionary",
      "Choose the encoding of an archive to build in parts", kDictionaryFooter,
      &RunBuild);
  options->subcommand = "dictionary";
  AddCommonOptions(*subcommand, *options);
}

}  // namespace quire
