// SPDX-License-Identifier: GPL-3.0-or-later
#include <cstdint>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "server/archive/archive.h"
#include "server/archive/files/archive_directory.h"
#include "server/archive/format/archive_format.h"
#include "server/commands/archive_upload.h"
#include "server/commands/build_inputs.h"
#include "server/commands/build_run.h"
#include "server/commands/build_summary.h"
#include "server/commands/encoding_options.h"
#include "server/commands/interrupt_flag.h"
#include "server/commands/quired_commands.h"
#include "server/commands/rebuild_estimate.h"
#include "server/commands/remote_paths.h"
#include "server/commands/subcommand_support.h"
#include "server/ingest/append.h"
#include "server/ingest/repeated_documents.h"
#include "server/storage/remote/store_address.h"

namespace quire {
namespace {

// The headers of smaller segments are too much of them to compare.
constexpr uint64_t kHintedSizeBytesMin = uint64_t{1} << 20;
// A rebuild is named that saves at least a tenth.
constexpr uint64_t kHintedSavingDivisor = 10;

constexpr char kFooter[] =
    R"(The documents become new segments, with the codec, level, block size, dictionary
and symbol table of ARCHIVE. Its documents keep their ids, ordinals and offsets, so
clients that began to read before continue. A server takes up the new state at
SIGHUP or with quired serve --reload-interval, and keeps its cache.

ARCHIVE is at any moment the old or the new archive, also if the command is killed.
ARCHIVE.partial holds the new segments until they are complete. Another writer of
ARCHIVE is refused meanwhile. Without new documents nothing changes.

--existing skip leaves out documents that ARCHIVE has: with the same id, record
type, capture time, size and bytes. It reads the inputs once more, and takes 16 bytes
of --build-memory for each of these documents.

With --merge auto, the last segments are then joined while one is smaller than twice
all after it, up to --segment-size together: blocks are copied, not encoded again, and
the files of joined segments are removed. Segments whose text is reordered are not
joined; quired compact joins these too.

ARCHIVE may be s3://BUCKET/PREFIX: new segments are uploaded, then MANIFEST, unless
another writer changed it. Objects that it no longer names are printed, and stay for
readers of the old state: an append deletes those replaced --delete-replaced ago.

An old dictionary suits new text less and less. The summary compares the new
segments with the first one. If they take twice as much of their text or more, archives
of a sample of 16 MiB are built in TMPDIR (up to 64 MiB of text: of all), and the summary
names a rebuild, quired build -o NEW ARCHIVE, and its size if that is a tenth less.
--quiet omits this. quired plan ARCHIVE uses a larger sample.
Text that repeats earlier segments is stored again until quired compact or a rebuild.
The summary names documents that repeat an earlier one of their id: the whole text, or
the body of a response; above 1,000 documents by a sample.
The kinds of INPUT are those of quired build.

Examples:
  quired append crawl.quire crawl-20261126-*.warc.gz
  quired append docs.quire --existing skip /usr/share/doc
  quired append all.quire other.quire
  tar -c new/ | quired append docs.quire -)";

struct AppendCommandOptions {
  std::string archive;
  BuildInputOptions input;
  EncodingOptions encoding;
  std::string existing = "add";
  std::string merge = "auto";
  KeptEncodingOptions kept;
  absl::Duration delete_replaced = absl::Hours(24);
  bool quiet = false;
};

// Errors: InvalidArgument  for the usage error.
absl::StatusOr<BuildOptions> MakeAppendOptions(
    const AppendCommandOptions& options) {
  QUIRE_RETURN_IF_ERROR(CheckKeptEncoding(options.kept.options, kKeptEncoding));
  EncodingOptions encoding = options.encoding;
  if (encoding.reorder.empty()) {
    encoding.reorder = "off";
  }
  return MakeBuildOptions(std::move(encoding));
}

void PrintAppended(const std::string& path, const AppendSummary& summary,
                   const Archive& archive, double seconds) {
  const ArchiveWriter::Appended& added = summary.build.appended;
  if (added.segment_count == 0) {
    std::cerr << PrintableMessage(path) << ": no new documents; unchanged\n";
  } else {
    std::cerr << PrintableMessage(path) << ": added "
              << FormatCounted(summary.document_count, "document", "documents")
              << ", " << FormatByteSize(added.size_bytes) << " in "
              << FormatCounted(added.segment_count, "segment", "segments")
              << "; the archive has "
              << FormatCounted(archive.info().document_count, "document",
                               "documents")
              << ", " << FormatByteSize(archive.info().size_bytes) << "\n"
              << "  on disk " << FormatByteSize(added.file_size_bytes) << ", "
              << FormatPercent(added.file_size_bytes, added.size_bytes)
              << " of the text";
    if (summary.first_size_bytes > 0) {
      std::cerr << "; the first segment has "
                << FormatPercent(summary.first_file_size_bytes,
                                 summary.first_size_bytes);
    }
    if (summary.build.joined_segment_count > 0) {
      std::cerr << "\n  the last " << summary.build.joined_segment_count
                << " segments were joined; the archive has "
                << FormatCounted(archive.info().segment_count, "segment",
                                 "segments");
    }
    std::cerr << "\n  added in " << FormatDuration(seconds) << ", "
              << FormatRate(added.size_bytes, seconds) << "\n"
              << "  uuid " << archive.info().uuid << "\n";
  }
  if (summary.existing_count > 0) {
    std::cerr << "  "
              << FormatCounted(summary.existing_count,
                               "document is there already and was left out",
                               "documents are there already and were left out")
              << "\n";
  }
}

// Prints how much of the added text the archive had before.
void PrintRepeated(const std::string& path, const AppendSummary& summary,
                   const Archive& archive) {
  const absl::StatusOr<RepeatedDocuments> repeated = FindRepeatedDocuments(
      archive, archive.info().document_count - summary.document_count,
      InterruptFlag::flag());
  if (!repeated.ok()) {
    std::cerr << "warning: the new documents are not compared with earlier "
                 "ones: "
              << PrintableMessage(repeated.status().message()) << "\n";
    return;
  }
  if (repeated->count > 0) {
    std::cerr << "  " << (repeated->is_estimate ? "about " : "")
              << FormatCounted(repeated->count,
                               "document repeats an earlier one",
                               "documents repeat earlier ones")
              << " of the same id, " << FormatByteSize(repeated->size_bytes)
              << "; quired compact " << PrintableMessage(path)
              << " --all --reorder dedup stores such text once\n";
  }
}

// True if the archive's dictionary does not suit the added text.
bool TakesTwiceTheFirst(const AppendSummary& summary) {
  const ArchiveWriter::Appended& added = summary.build.appended;
  const auto share = [](uint64_t file_size_bytes, uint64_t size_bytes) {
    return size_bytes == 0 ? 0.0
                           : static_cast<double>(file_size_bytes) /
                                 static_cast<double>(size_bytes);
  };
  const double first =
      share(summary.first_file_size_bytes, summary.first_size_bytes);
  return added.size_bytes >= kHintedSizeBytesMin && first > 0 &&
         share(added.file_size_bytes, added.size_bytes) >= 2 * first;
}

// Names a rebuild, and about what it saves, if that is worth it.
void PrintRebuildHint(const AppendCommandOptions& options,
                      const AppendSummary& summary, const std::string& path,
                      const Archive& archive) {
  if (!TakesTwiceTheFirst(summary)) {
    return;
  }
  const std::string name = PrintableMessage(options.archive);
  const absl::StatusOr<RebuildEstimate> estimate =
      EstimateRebuild(path, archive, options.encoding);
  if (!estimate.ok()) {
    std::cerr << "  twice as much of its text as the first segment, or more; "
                 "a rebuild is not estimated: "
              << PrintableMessage(estimate.status().message())
              << "; quired plan " << name
              << " samples what quired build -o NEW " << name
              << " would save\n";
    return;
  }
  const uint64_t saved_size_bytes = estimate->saved_size_bytes();
  if (saved_size_bytes < estimate->size_bytes / kHintedSavingDivisor) {
    return;
  }
  std::cerr << "  twice as much of its text as the first segment, or more: "
               "quired build -o NEW "
            << name << " would take about "
            << FormatByteSize(estimate->rebuilt_size_bytes) << " of "
            << FormatByteSize(estimate->size_bytes) << ", "
            << FormatPercent(saved_size_bytes, estimate->size_bytes)
            << " less, by "
            << (estimate->is_whole
                    ? "a trial with all text"
                    : "a sample of " +
                          FormatByteSize(estimate->sample_size_bytes))
            << "\n";
}

// An archive in a bucket, and its state before the change of its local copy.
struct RemoteBefore {
  // Null for a local archive.
  std::unique_ptr<ArchiveUpload> upload = nullptr;
  std::string manifest_tag;
  std::set<uint32_t> segments;
};

absl::StatusOr<std::set<uint32_t>> SegmentsOf(const std::string& path) {
  QUIRE_ASSIGN_OR_RETURN(const ArchiveDirectory directory,
                         OpenKnownArchive(path));
  std::set<uint32_t> numbers;
  for (const ManifestSegment& segment : directory.manifest.segments) {
    numbers.insert(segment.number);
  }
  return numbers;
}

// Makes local paths of URLs. Returns the path of the archive.
absl::StatusOr<std::string> OpenRemote(RemotePaths& paths,
                                       AppendCommandOptions& options,
                                       RemoteBefore& before) {
  if (IsStoreUrl(options.archive)) {
    QUIRE_ASSIGN_OR_RETURN(
        before.upload, ArchiveUpload::Open(options.archive, options.input.store,
                                           InterruptFlag::flag()));
  }
  QUIRE_RETURN_IF_ERROR(OpenRemoteInputs(paths, options.input));
  QUIRE_ASSIGN_OR_RETURN(std::string path, paths.OpenArchive(options.archive));
  if (before.upload != nullptr) {
    before.manifest_tag = RemotePaths::ManifestTag(path);
    QUIRE_ASSIGN_OR_RETURN(before.segments, SegmentsOf(path));
  }
  return path;
}

// Uploads what the copy at `path` has in addition, MANIFEST last.
absl::Status UploadChange(const AppendCommandOptions& options,
                          const RemoteBefore& before, const std::string& path) {
  QUIRE_ASSIGN_OR_RETURN(const std::set<uint32_t> segments, SegmentsOf(path));
  if (segments == before.segments) {
    return absl::OkStatus();
  }
  ArchiveUpload* const upload = before.upload.get();
  for (const uint32_t number : segments) {
    if (!before.segments.contains(number)) {
      QUIRE_RETURN_IF_ERROR(upload->AddFile(path, SegmentFileName(number)));
    }
  }
  QUIRE_RETURN_IF_ERROR(upload->Publish(path, before.manifest_tag));
  if (!options.quiet) {
    upload->PrintSummary();
  }
  return absl::OkStatus();
}

// Errors: InvalidArgument  for the usage error.
absl::StatusOr<SourceOptions> MakeInputs(const AppendCommandOptions& options,
                                         const std::string& path) {
  const std::string directory = OutputDirectory(path);
  QUIRE_ASSIGN_OR_RETURN(SourceOptions source_options,
                         MakeSourceOptions(options.input, directory));
  QUIRE_RETURN_IF_ERROR(
      CheckOutsideInputs("ARCHIVE", path, directory, options.input));
  return source_options;
}

int RunAppend(AppendCommandOptions options) {
  options.archive = TrimSlashes(std::move(options.archive));
  absl::StatusOr<BuildOptions> build = MakeAppendOptions(options);
  if (!build.ok()) {
    return ReportUsage("append", build.status().message());
  }
  RemotePaths paths(options.input.store, InterruptFlag::flag());
  RemoteBefore before;
  const absl::StatusOr<std::string> local = OpenRemote(paths, options, before);
  if (absl::IsInvalidArgument(local.status())) {
    return ReportUsage("append", local.status().message());
  }
  const absl::StatusOr<std::string> path =
      local.ok() ? PrepareChange(*local, options.encoding, *build)
                 : local.status();
  if (!path.ok()) {
    return ReportFailure(path.status());
  }
  const absl::StatusOr<SourceOptions> source_options =
      MakeInputs(options, *path);
  if (!source_options.ok()) {
    return ReportUsage("append", source_options.status().message());
  }
  const Stopwatch stopwatch;
  InputReport report(options.input);
  absl::StatusOr<std::vector<std::unique_ptr<Source>>> sources =
      OpenInputs(options.input.inputs, *source_options, report.failures());
  if (!sources.ok()) {
    return ReportFailure(sources.status());
  }
  BuildRun run(*build, !options.quiet && !options.input.verbose);
  build->deposits = options.input.deposits();
  build->input_size_bytes_max = options.input.input_size_bytes_max;
  build->failures = report.failures();
  build->on_note = report.listener();
  const absl::StatusOr<AppendSummary> summary = AppendToArchive(
      *path, *std::move(sources),
      options.existing == "skip" ? ExistingMode::kSkip : ExistingMode::kAdd,
      *std::move(build), options.merge == "auto");
  if (!summary.ok()) {
    return run.Fail(summary.status());
  }
  const absl::StatusOr<std::shared_ptr<const Archive>> archive =
      run.ReadBack(*path);
  if (!archive.ok()) {
    return ReportFailure(archive.status());
  }
  if (before.upload != nullptr) {
    const absl::Status uploaded = UploadChange(options, before, *path);
    if (!uploaded.ok()) {
      return run.Fail(uploaded);
    }
  }
  report.PrintWarnings(summary->build.skipped);
  PrintWarnings(summary->build, **archive);
  if (!options.quiet) {
    PrintAppended(options.archive, *summary, **archive, stopwatch.Seconds());
    PrintRepeated(options.archive, *summary, **archive);
    PrintRebuildHint(options, *summary, *path, **archive);
    PrintDeposits(summary->build.deposits);
    report.PrintHints(summary->build.skipped);
  }
  if (before.upload != nullptr) {
    const absl::Status deleted =
        before.upload->DeleteReplaced(options.delete_replaced, options.quiet);
    if (!deleted.ok()) {
      return run.Fail(deleted);
    }
  }
  const bool is_whole =
      (report.failures() == nullptr || report.failures()->count() == 0) &&
      summary->build.deposits.lost_count == 0;
  return is_whole ? kExitGood : kExitFailed;
}

}  // namespace

void AddAppendCommand(CLI::App& app, int& exit_code) {
  const auto [subcommand, options] = AddSubcommand<AppendCommandOptions>(
      app, exit_code, "append", "Add documents to an archive", kFooter,
      &RunAppend);
  subcommand
      ->add_option("ARCHIVE", options->archive,
                   "Directory of the archive, or s3://BUCKET/PREFIX")
      ->type_name("")
      ->required();
  AddInputOptions(*subcommand, options->input);
  subcommand
      ->add_option("--existing", options->existing,
                   "Treatment of documents that ARCHIVE has already")
      ->type_name("MODE")
      ->check(CLI::IsMember({"add", "skip"}))
      ->capture_default_str();
  subcommand
      ->add_option("--merge", options->merge,
                   "Joining of the last segments while they are small")
      ->type_name("MODE")
      ->check(CLI::IsMember({"auto", "off"}))
      ->capture_default_str();
  AddTextOptions(*subcommand, options->encoding);
  AddKeptEncodingOptions(*subcommand, options->kept);
  AddTimeOption(*subcommand, "--delete-replaced", options->delete_replaced,
                {.min = absl::ZeroDuration()},
                "Delete objects in the bucket that were replaced this long "
                "ago; inf: never");
  subcommand->add_flag("-q,--quiet", options->quiet,
                       "No progress and no summary, only warnings and errors");
}

}  // namespace quire
