// SPDX-License-Identifier: GPL-3.0-or-later
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/printable_text.h"
#include "server/archive/archive.h"
#include "server/commands/build_run.h"
#include "server/commands/build_summary.h"
#include "server/commands/encoding_options.h"
#include "server/commands/quired_commands.h"
#include "server/commands/subcommand_support.h"
#include "server/ingest/append.h"
#include "server/ingest/build_choice.h"

namespace quire {
namespace {

constexpr char kCompactFooter[] =
    R"(The last segments of ARCHIVE are encoded again as one, with its codec, level, block
size, dictionary and symbol table. That stores text once that repeats in them
(--reorder), fills short blocks, and takes in segments whose text is reordered, which
quired append does not join. Text, ids, ordinals and offsets stay, and earlier states
stay readable, so clients that began to read before continue.

A segment is taken in while it is smaller than twice all after it, and all together
have at most --segment-size. If that is only the last one, nothing is done, with
exit code 0. --all takes in all segments, for instance after appends that joined them.

ARCHIVE is at any moment the old or the new archive, also if the command is killed.
ARCHIVE.partial holds the new segments until they are complete; a killed run starts
over. Another writer of ARCHIVE is refused meanwhile. The old segment files are removed
last; a server that has them open keeps them until its next reload.

A new dictionary needs a rebuild: quired build -o NEW ARCHIVE.

Examples:
  quired compact crawl.quire
  quired compact docs.quire --all --reorder dedup)";

struct CompactCommandOptions {
  std::string archive;
  EncodingOptions encoding;
  KeptEncodingOptions kept;
  bool all = false;
  bool quiet = false;
};

void PrintNothing(const std::string& path, const CompactSummary& summary,
                  bool all) {
  const uint64_t count = summary.build.info.segment_count;
  std::cerr << PrintableMessage(path) << ": nothing to compact; unchanged\n";
  if (!all && count > 0) {
    std::cerr << "  the last of its "
              << FormatCounted(count, "segment", "segments")
              << " joins no other one within --segment-size; --all encodes all "
                 "segments again\n";
  }
}

// Prints the text that is not stored because other text of the segments equals
// it. No effect without any, before and after.
void PrintRepeats(const CompactSummary& summary) {
  const ArchiveWriter::Appended& added = summary.build.appended;
  const uint64_t before =
      added.size_bytes - summary.replaced_stored_text_size_bytes;
  const uint64_t after = added.size_bytes - added.stored_text_size_bytes;
  if (before == 0 && after == 0) {
    return;
  }
  std::cerr << "  " << FormatByteSize(after) << " of the text ("
            << FormatPercent(after, added.size_bytes)
            << ") repeats other text and is not stored; before, it was "
            << FormatByteSize(before) << "\n";
}

void PrintCompacted(const std::string& path, const CompactSummary& summary,
                    double seconds) {
  const ArchiveWriter::Appended& added = summary.build.appended;
  std::cerr << PrintableMessage(path) << ": "
            << FormatCounted(summary.replaced_segment_count, "segment",
                             "segments")
            << " of " << FormatByteSize(summary.replaced_file_size_bytes)
            << " became "
            << FormatCounted(added.segment_count, "segment", "segments")
            << " of " << FormatByteSize(added.file_size_bytes) << ", "
            << FormatPercent(added.file_size_bytes,
                             summary.replaced_file_size_bytes)
            << " of the old size\n";
  PrintRepeats(summary);
  std::cerr << "  the archive has "
            << FormatCounted(summary.build.info.segment_count, "segment",
                             "segments")
            << ", " << FormatByteSize(summary.build.info.stored_size_bytes)
            << " on disk; reorder "
            << ReorderModeName(summary.build.choice.reorder) << "\n"
            << "  encoded in " << FormatDuration(seconds) << ", "
            << FormatRate(added.size_bytes, seconds) << "\n"
            << "  uuid " << summary.build.info.uuid << "\n";
}

int RunCompact(CompactCommandOptions options) {
  options.archive = TrimSlashes(std::move(options.archive));
  const absl::Status kept =
      CheckKeptEncoding(options.kept.options, kKeptEncoding);
  if (!kept.ok()) {
    return ReportUsage("compact", kept.message());
  }
  absl::StatusOr<BuildOptions> build = MakeBuildOptions(options.encoding);
  if (!build.ok()) {
    return ReportUsage("compact", build.status().message());
  }
  const absl::StatusOr<std::string> path =
      PrepareChange(options.archive, options.encoding, *build);
  if (!path.ok()) {
    return ReportFailure(path.status());
  }
  const Stopwatch stopwatch;
  BuildRun run(*build, !options.quiet);
  const absl::StatusOr<CompactSummary> summary = CompactArchive(
      *path, options.all ? CompactedSegments::kAll : CompactedSegments::kSuffix,
      *std::move(build));
  if (!summary.ok()) {
    return run.Fail(summary.status());
  }
  const absl::StatusOr<std::shared_ptr<const Archive>> archive =
      run.ReadBack(*path);
  if (!archive.ok()) {
    return ReportFailure(archive.status());
  }
  PrintWarnings(summary->build, **archive);
  const int exit_code =
      summary->build.deposits.lost_count == 0 ? kExitGood : kExitFailed;
  if (options.quiet) {
    return exit_code;
  }
  if (summary->replaced_segment_count == 0) {
    PrintNothing(options.archive, *summary, options.all);
  } else {
    PrintCompacted(options.archive, *summary, stopwatch.Seconds());
  }
  return exit_code;
}

}  // namespace

void AddCompactCommand(CLI::App& app, int& exit_code) {
  const auto [subcommand, options] = AddSubcommand<CompactCommandOptions>(
      app, exit_code, "compact",
      "Encode the last segments of an archive again as one", kCompactFooter,
      &RunCompact);
  AddArchiveArgument(*subcommand, options->archive);
  subcommand->add_flag("--all", options->all,
                       "Encode all segments again, not only the last ones");
  AddTextOptions(*subcommand, options->encoding);
  AddKeptEncodingOptions(*subcommand, options->kept);
  subcommand->add_flag("-q,--quiet", options->quiet,
                       "No progress and no summary, only warnings and errors");
}

}  // namespace quire
