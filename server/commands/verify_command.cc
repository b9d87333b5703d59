// SPDX-License-Identifier: GPL-3.0-or-later
#include <unistd.h>

#include <cstdint>
#include <iostream>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/json_text.h"
#include "codecs/base/number_range.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/progress_meter.h"
#include "server/archive/archive_verifier.h"
#include "server/commands/quired_commands.h"
#include "server/commands/remote_paths.h"
#include "server/commands/subcommand_support.h"
#include "server/storage/base/cgroup.h"

#include "nlohmann/json.hpp"

namespace quire {
namespace {

constexpr char kVerifyFooter[] =
    R"(Reads and decodes every block, and checks dictionary and indexes. Prints damage
to standard output, with the affected documents.
The exit code is 0 without damage, 1 with damage, 2 if the command line is
malformed, and 3 if there is nothing to verify: no archive is there, this user
may not read it, or it needs a newer program.

With --part N/T it verifies the Nth of T equal parts: every part once is the whole
archive, except that a segment's checksum over all blocks, and the order of moved
text, need the whole segment in one part. Damaged indexes are found by each part.

Examples:
  quired verify docs.quire
  quired verify --part $(( $(date +%s) / 86400 % 14 + 1 ))/14 docs.quire
  quired verify s3://crawls/2024/docs.quire
  quired verify --json docs.quire | jq '.damages[].documents[].id')";

// There is nothing to verify.
constexpr int kExitUnreadable = 3;

struct VerifyCommandOptions {
  std::string archive;
  StoreArguments store;
  uint32_t threads = UsableCores();
  std::string part;
  bool json = false;
  bool quiet = false;
};

void PrintDamage(const ArchiveDamage& damage) {
  std::cout << "damaged: "
            << PrintableMessage(RemotePaths::WithUrls(damage.status.message()))
            << "\n";
  if (damage.lost.size_bytes > 0) {
    std::cout << "  lost: bytes " << damage.lost.offset.value << " to "
              << damage.lost.offset.value + damage.lost.size_bytes - 1
              << " of the text, " << FormatByteSize(damage.lost.size_bytes);
    if (damage.further_lost_count > 0) {
      std::cout << ", and " << FormatByteSize(damage.further_lost_size_bytes)
                << " in "
                << FormatCounted(damage.further_lost_count, "other place",
                                 "other places");
    }
    std::cout << ", of " << (damage.is_document_count_exact ? "" : "up to ")
              << FormatCounted(damage.document_count, "document", "documents")
              << (damage.is_document_count_exact
                      ? ""
                      : "; the damage hides which ones they are")
              << "\n";
  }
  if (!damage.effect.empty()) {
    std::cout << "  effect: " << damage.effect << "\n";
  }
  for (const Document& document : damage.documents) {
    std::cout << "  document " << document.ordinal.value << ": "
              << PrintableText(document.id) << "\n";
  }
  if (!damage.documents.empty() &&
      damage.documents.size() < damage.document_count) {
    std::cout << "  and "
              << FormatCount(damage.document_count - damage.documents.size())
              << " more\n";
  }
}

Json DamageToJson(const ArchiveDamage& damage) {
  Json json;
  json["message"] = RemotePaths::WithUrls(damage.status.message());
  if (damage.block.has_value()) {
    json["segment"] = damage.block->segment_index;
    json["block"] = damage.block->block_index;
  }
  json["lost_offset"] = damage.lost.offset.value;
  json["lost_size_bytes"] = damage.lost.size_bytes;
  json["further_lost_count"] = damage.further_lost_count;
  json["further_lost_size_bytes"] = damage.further_lost_size_bytes;
  json["document_count"] = damage.document_count;
  json["document_count_exact"] = damage.is_document_count_exact;
  if (!damage.effect.empty()) {
    json["effect"] = damage.effect;
  }
  Json& documents = json["documents"] = Json::array();
  for (const Document& document : damage.documents) {
    documents.push_back(
        Json{{"ordinal", document.ordinal.value}, {"id", document.id}});
  }
  return json;
}

void PrintReport(const std::string& path, const VerifyReport& report,
                 double seconds) {
  std::cout << PrintableMessage(path) << ": "
            << (report.damage_count == 0 ? "whole" : "DAMAGED") << ": "
            << FormatCounted(report.good_block_count, "good block",
                             "good blocks")
            << ", " << FormatByteSize(report.good_size_bytes) << " of text";
  if (report.damage_count > 0) {
    std::cout << "; "
              << FormatCounted(report.damaged_block_count, "damaged block",
                               "damaged blocks")
              << "; damage found in "
              << FormatCounted(report.damage_count, "place", "places");
  }
  std::cout << " (" << FormatRate(report.good_size_bytes, seconds) << ")\n";
}

// Sets the part that "N/T" means; returns false if it is malformed.
bool ParsePart(absl::string_view text, VerifyOptions& options) {
  constexpr uint64_t kPartsMax = 1'000'000;
  const std::pair<absl::string_view, absl::string_view> numbers =
      absl::StrSplit(text, absl::MaxSplits('/', 1));
  uint64_t number = 0;
  if (!absl::SimpleAtoi(numbers.first, &number) ||
      !absl::SimpleAtoi(numbers.second, &options.part_count) || number == 0 ||
      number > options.part_count || options.part_count > kPartsMax) {
    return false;
  }
  options.part_index = number - 1;
  return true;
}

// Prints one object piece by piece, as there may be much damage.
class JsonReport {
 public:
  explicit JsonReport(const std::string& path) {
    std::cout << "{\"archive\":" << JsonString(path) << ",\"damages\":[";
  }

  void Add(const ArchiveDamage& damage) {
    std::cout << separator_ << JsonText(DamageToJson(damage));
    separator_ = ",";
  }

  void Finish(const absl::StatusOr<VerifyReport>& report) {
    Json json;
    json["whole"] = report.ok() && report->damage_count == 0;
    if (report.ok()) {
      json["good_block_count"] = report->good_block_count;
      json["damaged_block_count"] = report->damaged_block_count;
      json["good_size_bytes"] = report->good_size_bytes;
      json["damage_count"] = report->damage_count;
    } else {
      json["error"] = RemotePaths::WithUrls(report.status().message());
    }
    // Appends its members to the open object.
    std::cout << "]," << JsonText(json).substr(1) << "\n";
  }

 private:
  const char* separator_ = "";
};

// Returns the exit code. `unreadable_count` places of damage could not be read.
int EndWith(const VerifyReport& report, uint64_t unreadable_count) {
  if (unreadable_count > 0) {
    std::cerr << "quired: not all files could be read, and they may be whole; "
                 "verify as a user who may read them, and while the store "
                 "answers\n";
  }
  return report.damage_count == 0                  ? kExitGood
         : report.damage_count == unreadable_count ? kExitUnreadable
                                                   : kExitFailed;
}

int RunVerify(const VerifyCommandOptions& options) {
  VerifyOptions verify;
  if (!options.part.empty() && !ParsePart(options.part, verify)) {
    return ReportUsage("verify",
                       absl::StrCat("--part must be N/T with 1 <= N <= T <= "
                                    "1000000, like 3/14, got \"",
                                    PrintableText(options.part), "\""));
  }
  const Stopwatch stopwatch;
  RemotePaths paths(options.store);
  const absl::StatusOr<std::string> path = paths.OpenArchive(options.archive);
  if (absl::IsInvalidArgument(path.status())) {
    return ReportUsage("verify", path.status().message());
  }
  std::optional<ProgressMeter> meter;
  if (!options.quiet && isatty(STDERR_FILENO) != 0) {
    meter.emplace(std::cerr, &absl::Now, ProgressMeterOptions{});
  }
  std::optional<JsonReport> json;
  if (options.json) {
    json.emplace(options.archive);
  }
  verify.thread_count = options.threads;
  verify.on_progress = [&meter](const VerifyProgress& progress) {
    if (meter.has_value()) {
      meter->Update({.phase = "verifying",
                     .item_count = progress.blocks_done,
                     .item_count_total = progress.blocks_total,
                     .item_name = "blocks"});
    }
  };
  uint64_t unreadable_count = 0;
  const auto report_damage = [&](const ArchiveDamage& damage) {
    // A store that does not answer is no damage.
    unreadable_count += absl::IsPermissionDenied(damage.status) ||
                                absl::IsUnavailable(damage.status) ||
                                absl::IsAborted(damage.status)
                            ? 1
                            : 0;
    json.has_value() ? json->Add(damage) : PrintDamage(damage);
  };
  const absl::StatusOr<VerifyReport> report =
      path.ok() ? VerifyArchive(*path, verify, report_damage)
                : absl::StatusOr<VerifyReport>(path.status());
  meter.reset();
  if (absl::IsDataLoss(report.status())) {
    ArchiveDamage damage;
    damage.status = report.status();
    damage.effect =
        "a single point of loss: the archive is not served; quired repair "
        "takes MANIFEST from a copy, quired salvage saves documents without it";
    report_damage(damage);
  }
  if (json.has_value()) {
    json->Finish(report);
  } else if (report.ok() && !options.quiet) {
    PrintReport(options.part.empty()
                    ? options.archive
                    : absl::StrCat(options.archive, ", part ", options.part),
                *report, stopwatch.Seconds());
  }
  if (!report.ok()) {
    if (absl::IsDataLoss(report.status())) {
      return kExitFailed;
    }
    ReportFailure(report.status());
    return kExitUnreadable;
  }
  return EndWith(*report, unreadable_count);
}

}  // namespace

void AddVerifyCommand(CLI::App& app, int& exit_code) {
  const auto [subcommand, options] = AddSubcommand<VerifyCommandOptions>(
      app, exit_code, "verify",
      "Read and decode a whole archive, and report damage", kVerifyFooter,
      &RunVerify);
  AddReadArchiveArgument(*subcommand, options->archive, options->store);
  subcommand->add_option("--threads", options->threads, "Decode threads")
      ->type_name("N")
      ->check(CountInRange(1, 1024))
      ->capture_default_str();
  subcommand
      ->add_option("--part", options->part,
                   "Part to verify, the Nth of T, for a schedule")
      ->type_name("N/T");
  subcommand->add_flag("--json", options->json,
                       "Print one JSON object, on one line");
  subcommand->add_flag("-q,--quiet", options->quiet,
                       "Print damage only, no progress and no summary");
}

}  // namespace quire
