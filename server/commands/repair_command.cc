// SPDX-License-Identifier: GPL-3.0-or-later
#include <unistd.h>

#include <cstdint>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/progress_meter.h"
#include "server/archive/repair/archive_repair.h"
#include "server/commands/quired_commands.h"
#include "server/commands/remote_paths.h"
#include "server/commands/subcommand_support.h"

namespace quire {
namespace {

constexpr char kRepairFooter[] =
    R"(Every part of a file has a checksum: each block, each index, the tables. Damaged
parts are taken from any PATH that has them undamaged; each may be damaged itself.
A damaged file is written anew next to ARCHIVE, read back and renamed over the old
one if all of it matches. If no PATH has a part, its file stays unchanged, and the
part is named. Repeat the command after an interruption; on a whole archive it
changes nothing. Send SIGHUP to a server that has ARCHIVE open.

The exit code is 0 if ARCHIVE is whole afterwards (--dry-run: would be), and 1 if
parts are missing or the repair failed.

Examples:
  quired repair docs.quire --from /backup/docs.quire
  quired repair docs.quire --from a/docs.quire --from b/docs.quire --dry-run
  quired repair docs.quire --from s3://crawls/2024/docs.quire)";

struct RepairCommandOptions {
  std::string archive;
  std::vector<std::string> copies;
  StoreArguments store;
  bool dry_run = false;
  bool quiet = false;
};

void PrintFile(const RepairedFile& file, bool dry_run) {
  std::cout << file.name << ": ";
  if (!file.missing.empty()) {
    std::cout << "NOT REPAIRED: no copy has "
              << absl::StrJoin(file.missing, ", ") << "\n";
    return;
  }
  std::cout << (dry_run ? "can be repaired: " : "repaired: ");
  if (file.replaced_count == 0) {
    std::cout << "bytes past its end removed\n";
    return;
  }
  std::cout << FormatCounted(file.replaced_count, "part", "parts") << " of "
            << FormatByteSize(file.replaced_size_bytes) << "\n";
}

int RunRepair(const RepairCommandOptions& options) {
  RemotePaths paths(options.store);
  std::vector<std::string> copies;
  for (const std::string& copy : options.copies) {
    const absl::StatusOr<std::string> path = paths.OpenArchive(copy);
    if (!path.ok()) {
      return absl::IsInvalidArgument(path.status())
                 ? ReportUsage("repair", path.status().message())
                 : ReportFailure(path.status());
    }
    copies.push_back(*path);
  }
  std::optional<ProgressMeter> meter;
  if (!options.quiet && isatty(STDERR_FILENO) != 0) {
    meter.emplace(std::cerr, &absl::Now, ProgressMeterOptions{});
  }
  RepairOptions repair;
  repair.dry_run = options.dry_run;
  repair.on_progress = [&meter](const RepairProgress& progress) {
    if (meter.has_value()) {
      meter->Update({.phase = "comparing",
                     .item_count = progress.bytes_done >> 20,
                     .item_count_total = progress.bytes_total >> 20,
                     .item_name = "MiB"});
    }
  };
  const absl::StatusOr<RepairReport> report =
      RepairArchive(options.archive, copies, repair);
  meter.reset();
  if (!report.ok()) {
    return ReportFailure(report.status());
  }
  uint64_t left_count = 0;
  for (const RepairedFile& file : report->files) {
    PrintFile(file, options.dry_run);
    left_count += file.missing.empty() ? 0 : 1;
  }
  if (!options.quiet) {
    std::cout << PrintableMessage(options.archive) << ": "
              << FormatCounted(report->file_count, "file", "files") << ", "
              << report->files.size() << " damaged, "
              << report->files.size() - left_count
              << (options.dry_run ? " can be repaired\n" : " repaired\n");
  }
  if (const absl::Status failure = paths.failure();
      !report->IsWhole() && !failure.ok()) {
    std::cerr << "quired: a copy could not be read in full, so that parts may "
                 "only seem to be missing; repeat the command later: "
              << PrintableMessage(RemotePaths::WithUrls(failure.message()))
              << "\n";
  }
  return report->IsWhole() ? kExitGood : kExitFailed;
}

}  // namespace

void AddRepairCommand(CLI::App& app, int& exit_code) {
  const auto [subcommand, options] = AddSubcommand<RepairCommandOptions>(
      app, exit_code, "repair",
      "Replace the damaged parts of an archive by those of copies",
      kRepairFooter, &RunRepair);
  AddArchiveArgument(*subcommand, options->archive);
  subcommand
      ->add_option("--from", options->copies,
                   "Copy with the same uuid, which may be a URL; repeatable")
      ->type_name("PATH")
      ->required()
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  AddStoreReadOptions(*subcommand, options->store);
  subcommand->add_flag("--dry-run", options->dry_run,
                       "Print what would be replaced; change nothing");
  subcommand->add_flag("-q,--quiet", options->quiet,
                       "Print damaged files only, no progress and no summary");
}

}  // namespace quire
