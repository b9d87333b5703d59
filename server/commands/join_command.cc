// SPDX-License-Identifier: GPL-3.0-or-later
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "server/archive/archive_join.h"
#include "server/commands/archive_upload.h"
#include "server/commands/build_run.h"
#include "server/commands/encoding_options.h"
#include "server/commands/interrupt_flag.h"
#include "server/commands/quired_commands.h"
#include "server/commands/remote_paths.h"
#include "server/commands/subcommand_support.h"
#include "server/storage/remote/store_address.h"

namespace quire {
namespace {

constexpr char kJoinFooter[] =
    R"(The parts are archives that quired build --like built, or any with one codec, level,
block size, dictionary and symbol table, and with segments of different numbers. Their
documents follow each other in the order of the arguments: name parts 01, 02, ... 10,
not 1, 2, ... 10, if a shell sorts them. Duplicates in different parts are not found.

Nothing is encoded again: OUT has hard links to the files of the parts, or copies where
the file system refuses links, and a MANIFEST. The first part may be an archive that
grows: OUT then has its history, and clients that began to read it continue. The parts
stay; remove them when OUT is there, which keeps its files. Documents that quired redact
removed from a part stay removed. Redact OUT rather than parts that were joined: files
of the others keep the text.

Everything except the blocks is read before OUT appears, whole or not at all, also if
the command is killed. quired verify reads the blocks, too.

Parts s3://BUCKET/PREFIX/parts/NAME are joined to s3://BUCKET/PREFIX, where their segments
lie: this reads what is not a block, and puts one MANIFEST.

Examples:
  quired join -o all.quire part-*.quire
  quired join -o s3://crawls/web s3://crawls/web/parts/1 s3://crawls/web/parts/2
  quired join --force -o all.quire all.quire night-01.quire night-02.quire)";

struct JoinCommandOptions {
  std::string output;
  StoreArguments store;
  std::vector<std::string> parts;
  bool force = false;
  bool quiet = false;
};

// Errors: InvalidArgument  for the usage error.
absl::Status CheckOutsideParts(const JoinCommandOptions& options) {
  for (const std::string& part : options.parts) {
    std::error_code error;
    if (std::filesystem::equivalent(part, OutputDirectory(options.output),
                                    error)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--output must be outside the parts, and ", options.output,
          " is inside ", part, "; give another path"));
    }
  }
  return absl::OkStatus();
}

void PrintJoined(const JoinCommandOptions& options, const ArchiveInfo& info,
                 double seconds) {
  std::cerr << PrintableMessage(options.output) << ": "
            << FormatCounted(options.parts.size(), "part", "parts")
            << " joined; the archive has "
            << FormatCounted(info.document_count, "document", "documents")
            << ", " << FormatByteSize(info.size_bytes) << " in "
            << FormatCounted(info.segment_count, "segment", "segments")
            << "\n  on disk " << FormatByteSize(info.stored_size_bytes) << ", "
            << FormatPercent(info.stored_size_bytes, info.size_bytes)
            << " of the text\n  joined in " << FormatDuration(seconds)
            << "\n  uuid " << info.uuid << "\n";
}

// Where a join happens: on local paths, and for URLs in copies of all but the
// blocks.
struct JoinPlaces {
  std::string output;
  std::vector<std::string> parts;
  // Null for a local output.
  std::unique_ptr<ArchiveUpload> upload = nullptr;
  // ETag of the MANIFEST that is replaced, or empty.
  std::string replaced = {};
};

// A part in a bucket must have its files where those of the output are.
// Errors: InvalidArgument  for the usage error.
absl::Status CheckPartsShareFiles(const JoinCommandOptions& options,
                                  const StoreAddress* output) {
  for (const std::string& part : options.parts) {
    bool is_there = !IsStoreUrl(part);
    if (output != nullptr) {
      const auto address = ParseStoreAddress(part, options.store.endpoint, "");
      is_there = address.ok() && address->drive == output->drive &&
                 address->key_prefix == output->key_prefix;
    }
    if (!is_there) {
      return absl::InvalidArgumentError(absl::StrCat(
          part,
          ": parts in a bucket are joined there, and have their "
          "segments in OUT: expected OUT/parts/NAME, and OUT a URL"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<JoinPlaces> OpenPlaces(RemotePaths& paths,
                                      const JoinCommandOptions& options) {
  JoinPlaces places = {.output = options.output, .parts = {}};
  if (IsStoreUrl(options.output)) {
    QUIRE_ASSIGN_OR_RETURN(places.upload,
                           ArchiveUpload::Open(options.output, options.store,
                                               InterruptFlag::flag()));
  }
  QUIRE_RETURN_IF_ERROR(CheckPartsShareFiles(
      options, places.upload == nullptr ? nullptr : &places.upload->address()));
  if (places.upload != nullptr) {
    QUIRE_ASSIGN_OR_RETURN(places.replaced, places.upload->FindManifest());
    if (!options.force && !places.replaced.empty()) {
      QUIRE_RETURN_IF_ERROR(places.upload->CheckIsNew());
    }
  }
  for (const std::string& part : options.parts) {
    QUIRE_ASSIGN_OR_RETURN(places.parts.emplace_back(),
                           paths.OpenArchive(part));
    if (part == options.output) {
      places.replaced = RemotePaths::ManifestTag(places.parts.back());
    }
  }
  if (places.upload != nullptr) {
    places.output = absl::StrCat(paths.directory(), "/joined");
  }
  return places;
}

int RunJoin(JoinCommandOptions options) {
  options.output = TrimSlashes(std::move(options.output));
  for (std::string& part : options.parts) {
    part = TrimSlashes(std::move(part));
  }
  const absl::Status outside = CheckOutsideParts(options);
  if (!outside.ok()) {
    return ReportUsage("join", outside.message());
  }
  const Stopwatch stopwatch;
  const InterruptFlag interrupt;
  RemotePaths paths(options.store, InterruptFlag::flag());
  const absl::StatusOr<JoinPlaces> places = OpenPlaces(paths, options);
  if (absl::IsInvalidArgument(places.status())) {
    return ReportUsage("join", places.status().message());
  }
  absl::Status status = places.status();
  if (status.ok()) {
    status = CheckOutput(places->output, options.force, "--force");
  }
  const absl::StatusOr<JoinSummary> summary =
      status.ok() ? JoinArchives(places->output, places->parts, options.force,
                                 InterruptFlag::flag())
                  : absl::StatusOr<JoinSummary>(status);
  if (summary.ok() && places->upload != nullptr) {
    status = places->upload->Publish(places->output, places->replaced);
  }
  if (!summary.ok() || !status.ok()) {
    const int exit_code =
        ReportFailure(summary.ok() ? status : summary.status());
    interrupt.EndProcessIfSet();
    return exit_code;
  }
  if (!summary->out_of_order.empty()) {
    std::cerr << "warning: the segments of "
              << PrintableMessage(RemotePaths::WithUrls(summary->out_of_order))
              << " are numbered below those of a part before it; documents are "
                 "in the order of the arguments\n";
  }
  if (!options.quiet) {
    PrintJoined(options, summary->info, stopwatch.Seconds());
  }
  return kExitGood;
}

}  // namespace

void AddJoinCommand(CLI::App& app, int& exit_code) {
  const auto [subcommand, options] = AddSubcommand<JoinCommandOptions>(
      app, exit_code, "join",
      "Make one archive of parts that were built in parallel", kJoinFooter,
      &RunJoin);
  subcommand
      ->add_option("-o,--output", options->output,
                   "Directory of the archive, or s3://BUCKET/PREFIX")
      ->type_name("OUT")
      ->required();
  subcommand
      ->add_option("PART", options->parts,
                   "Parts, in the order of the documents")
      ->type_name("")
      ->required();
  AddStoreReadOptions(*subcommand, options->store);
  subcommand->add_flag("--force", options->force,
                       "Replace the archive at OUT, which may be a part");
  subcommand->add_flag("-q,--quiet", options->quiet,
                       "No summary, only warnings and errors");
}

}  // namespace quire
