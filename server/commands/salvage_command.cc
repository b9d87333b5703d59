// SPDX-License-Identifier: GPL-3.0-or-later
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/json_text.h"
#include "codecs/base/printable_text.h"
#include "codecs/filter/field_value.h"
#include "codecs/filter/filter.h"
#include "server/archive/repair/archive_salvage.h"
#include "server/archive/repair/salvage_output.h"
#include "server/commands/quired_commands.h"
#include "server/commands/remote_paths.h"
#include "server/commands/subcommand_support.h"

#include "nlohmann/json.hpp"

namespace quire {
namespace {

constexpr char kSalvageFooter[] =
    R"(Saves each document that decodes completely, from an archive with damaged blocks,
indexes, tables, or without MANIFEST. Prints damage, and lost documents with the
bytes that cannot be decoded. Documents that quired redact removed are left out. If
another copy of the archive exists, use quired repair instead.

An output NAME.quire is a new archive, with ids, times, types and fields of the
documents, in zstd blocks; quired build of it chooses a better encoding. Values of fields
in damaged parts become null, and are counted. A tar or a directory has no types and
fields. Documents keep their ids as names, except ids that no file can have; a
document whose id is lost is named %document-NUMBER. In a directory so is the second
document of an id; archives and tars have all of them.

After a kill or an error OUTPUT.partial/SALVAGED has what was saved in a tar or directory
until then; the next run replaces it.

The exit code is 0 if no document is lost, and 1 otherwise; also 1 if a segment is
left out, if fields or values of fields are not saved, or if ids or text were saved that
no checksum proves.

Of an archive at a URL, MANIFEST and the ends of all segments must be whole; copy
one with more damage to this machine first. If its store does not answer, the
command fails, and leaves what it leaves after an error.

Examples:
  quired salvage damaged.quire -o saved.quire > lost.txt
  quired build -o docs.quire saved.quire
  quired salvage s3://crawls/2024/docs.quire -o saved.tar)";

struct SalvageCommandOptions {
  std::string archive;
  StoreArguments store;
  std::string output;
  bool json = false;
  bool quiet = false;
};

std::string ShownName(const Document& document, bool has_id) {
  return absl::StrCat(
      "document ", document.ordinal.value,
      has_id ? ": " + PrintableText(document.id) : ", whose id is lost");
}

void PrintLost(const LostDocument& lost) {
  std::cout << "lost: " << ShownName(lost.document, lost.has_id) << ": ";
  const char* separator = "bytes ";
  for (const LogicalRange& range : lost.lost) {
    std::cout << separator << range.offset.value << " to "
              << range.offset.value + range.size_bytes - 1;
    separator = ", ";
  }
  std::cout << " of " << lost.document.range.size_bytes << " ("
            << PrintableMessage(RemotePaths::WithUrls(lost.status.message()))
            << ")\n";
}

Json LostToJson(const LostDocument& lost) {
  Json json;
  json["ordinal"] = lost.document.ordinal.value;
  if (lost.has_id) {
    json["id"] = lost.document.id;
  }
  json["offset"] = lost.document.range.offset.value;
  json["size_bytes"] = lost.document.range.size_bytes;
  Json& ranges = json["lost"] = Json::array();
  for (const LogicalRange& range : lost.lost) {
    ranges.push_back(
        Json{{"offset", range.offset.value}, {"size_bytes", range.size_bytes}});
  }
  json["message"] = RemotePaths::WithUrls(lost.status.message());
  return json;
}

// Prints one object on each line; a list of all would not fit memory.
class SalvagePrinter {
 public:
  explicit SalvagePrinter(bool json) : json_(json) {}

  SalvageCallbacks Callbacks() {
    return {.on_damage = [this](const absl::Status& status) { Damage(status); },
            .on_lost = [this](const LostDocument& lost) { Lost(lost); },
            .on_renamed =
                [this](const Document& document, const std::string& name) {
                  Renamed(document, name);
                }};
  }

  void Summary(const std::string& archive, const SalvageReport& report) {
    if (json_) {
      Print("summary",
            Json{{"saved_count", report.saved_count},
                 {"saved_size_bytes", report.saved_size_bytes},
                 {"lost_count", report.lost_count},
                 {"left_out_segment_count", report.left_out_segment_count},
                 {"unproved_section_count", report.unproved_section_count},
                 {"unsaved_fields_count", report.unsaved_fields_count},
                 {"lost_field_value_count", report.lost_field_value_count},
                 {"unsaved_file_count", report.unsaved_file_count},
                 {"damage_count", report.damage_count},
                 {"has_manifest", report.has_manifest}});
      return;
    }
    std::cout << PrintableMessage(archive) << ": "
              << FormatCounted(report.saved_count, "document", "documents")
              << " saved, " << FormatByteSize(report.saved_size_bytes) << "; "
              << FormatCount(report.lost_count) << " lost" << Further(report)
              << (report.has_manifest
                      ? ""
                      : "; without MANIFEST, missing segments are unknown, and "
                        "if an append was interrupted, documents of segments "
                        "that it joined can be saved twice")
              << "\n";
  }

 private:
  static std::string Further(const SalvageReport& report) {
    std::string text;
    if (report.left_out_segment_count > 0) {
      absl::StrAppend(
          &text, "; ",
          FormatCounted(report.left_out_segment_count, "segment", "segments"),
          " left out, with an unknown number of documents");
    }
    if (report.unsaved_fields_count > 0) {
      absl::StrAppend(
          &text, "; fields of ",
          FormatCounted(report.unsaved_fields_count, "segment", "segments"),
          " not saved");
    }
    if (report.lost_field_value_count > 0) {
      absl::StrAppend(
          &text, "; ",
          FormatCounted(report.lost_field_value_count, "value of a field is",
                        "values of fields are"),
          " lost and saved as null");
    }
    if (report.unproved_section_count > 0) {
      absl::StrAppend(
          &text, "; names or text can be wrong: ",
          FormatCounted(report.unproved_section_count, "section", "sections"),
          " used without a checksum");
    }
    return text;
  }

  static void Print(const char* kind, Json value) {
    std::cout << JsonText(Json{{kind, std::move(value)}}) << "\n";
  }

  void Damage(const absl::Status& status) const {
    if (json_) {
      Print("damage", RemotePaths::WithUrls(status.message()));
    } else {
      std::cout << "damaged: "
                << PrintableMessage(RemotePaths::WithUrls(status.message()))
                << "\n";
    }
  }

  void Lost(const LostDocument& lost) const {
    if (json_) {
      Print("lost", LostToJson(lost));
    } else {
      PrintLost(lost);
    }
  }

  void Renamed(const Document& document, const std::string& name) const {
    if (json_) {
      Print("renamed", Json{{"ordinal", document.ordinal.value},
                            {"id", document.id},
                            {"name", name}});
    } else {
      std::cout << "renamed: document " << document.ordinal.value << ": "
                << PrintableText(document.id) << " is saved as "
                << PrintableText(name) << "\n";
    }
  }

  const bool json_;
};

absl::StatusOr<std::unique_ptr<SalvageOutput>> MakeOutput(
    const std::string& path) {
  if (absl::EndsWith(path, ".tar")) {
    return MakeSalvageTar(path);
  }
  absl::string_view name = path;
  while (absl::ConsumeSuffix(&name, "/")) {
  }
  return absl::EndsWith(name, ".quire") ? MakeSalvageArchive(path)
                                        : MakeSalvageDirectory(path);
}

// A directory of such a name would be a surprise.
bool IsPackedName(absl::string_view name) {
  return absl::StrContains(name, ".tar.") || absl::EndsWith(name, ".tgz") ||
         absl::EndsWith(name, ".zip");
}

// Passes everything on, but does not finish if a store did not answer: what it
// did not send is not lost.
class CheckedOutput final : public SalvageOutput {
 public:
  CheckedOutput(SalvageOutput& output, const RemotePaths& paths)
      : output_(output), paths_(paths) {}

  bool keeps_fields() const override { return output_.keeps_fields(); }

  absl::Status BeginSegment(absl::Span<const FieldColumn> fields) override {
    return output_.BeginSegment(fields);
  }

  absl::StatusOr<std::string> Begin(
      const Document& document, bool has_id,
      absl::Span<const FieldValue> fields) override {
    return output_.Begin(document, has_id, fields);
  }

  absl::Status Write(ByteView bytes) override { return output_.Write(bytes); }

  absl::Status End() override { return output_.End(); }

  absl::Status Drop() override { return output_.Drop(); }

  absl::Status Finish(uint64_t lost_count) override {
    const absl::Status failure = paths_.failure();
    return failure.ok()
               ? output_.Finish(lost_count)
               : absl::Status(
                     failure.code(),
                     absl::StrCat("the store did not answer, so documents only "
                                  "seem to be lost; repeat the command later: ",
                                  failure.message()));
  }

 private:
  SalvageOutput& output_;
  const RemotePaths& paths_;
};

int RunSalvage(const SalvageCommandOptions& options) {
  if (IsPackedName(std::filesystem::path(options.output).filename().string())) {
    return ReportUsage(
        "salvage",
        absl::StrCat("--output must be a NAME.quire, a directory, or a "
                     "FILE.tar, which is not compressed; got ",
                     options.output));
  }
  RemotePaths paths(options.store);
  const absl::StatusOr<std::string> path = paths.OpenArchive(options.archive);
  if (!path.ok()) {
    return absl::IsInvalidArgument(path.status())
               ? ReportUsage("salvage", path.status().message())
               : ReportFailure(path.status());
  }
  auto output = MakeOutput(options.output);
  if (!output.ok()) {
    return ReportFailure(output.status());
  }
  CheckedOutput checked(**output, paths);
  SalvagePrinter printer(options.json);
  const absl::StatusOr<SalvageReport> report =
      SalvageArchive(*path, checked, printer.Callbacks());
  if (!report.ok()) {
    return ReportFailure(report.status());
  }
  if (!options.quiet) {
    printer.Summary(options.archive, *report);
  }
  return report->lost_count == 0 && report->left_out_segment_count == 0 &&
                 report->unproved_section_count == 0 &&
                 report->unsaved_fields_count == 0 &&
                 report->lost_field_value_count == 0 &&
                 report->unsaved_file_count == 0
             ? kExitGood
             : kExitFailed;
}

}  // namespace

void AddSalvageCommand(CLI::App& app, int& exit_code) {
  const auto [subcommand, options] = AddSubcommand<SalvageCommandOptions>(
      app, exit_code, "salvage",
      "Save the documents of a damaged archive that still decode",
      kSalvageFooter, &RunSalvage);
  AddReadArchiveArgument(*subcommand, options->archive, options->store);
  subcommand
      ->add_option("-o,--output", options->output,
                   "Archive to create if the name ends in .quire, a tar if it "
                   "ends in .tar, or a directory")
      ->type_name("NAME.quire|FILE.tar|DIR")
      ->required();
  subcommand->add_flag("--json", options->json,
                       "Print one JSON object on each line");
  subcommand->add_flag("-q,--quiet", options->quiet, "Print no summary");
}

}  // namespace quire
