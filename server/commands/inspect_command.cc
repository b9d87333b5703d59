// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/json_text.h"
#include "codecs/base/printable_text.h"
#include "codecs/deflate/deflate_finder.h"
#include "codecs/deflate/deflate_recipe.h"
#include "codecs/filter/filter.h"
#include "server/archive/archive.h"
#include "server/archive/capture_scan.h"
#include "server/archive/deposited_files.h"
#include "server/commands/quired_commands.h"
#include "server/commands/remote_paths.h"
#include "server/commands/subcommand_support.h"

#include "nlohmann/json.hpp"

namespace quire {
namespace {

constexpr char kInspectFooter[] =
    R"(Opens the archive like quired serve: manifest, dictionary, symbol table and
indexes are read and checked, blocks are not (quired verify does that). "memory"
is the memory for serving it, without the block cache; "captures" is the index of
captures of a crawl, of which only the inner nodes are read.

Examples:
  quired inspect docs.quire
  quired inspect --json docs.quire | jq .stored_size_bytes)";

// One part of the memory for serving.
struct MemoryPart {
  const char* title;
  const char* json_key;
  uint64_t size_bytes;
  // Unit by which it grows; empty for parts of fixed size.
  const char* unit;
  uint64_t unit_count;
};

std::array<MemoryPart, 9> PartsOf(const Archive& archive) {
  const ArchiveMemory& memory = archive.memory();
  const uint64_t blocks = archive.info().block_count;
  const uint64_t documents = archive.info().document_count;
  return {
      {{"dictionary", "dictionary_bytes", memory.dictionary_bytes, "", 0},
       {"symbol table", "symbol_table_bytes", memory.symbol_table_bytes, "", 0},
       {"codec", "codec_bytes", memory.codec_bytes, "", 0},
       {"block index", "block_index_bytes", memory.block_index_bytes, "block",
        blocks},
       {"layout", "layout_bytes", memory.layout_bytes, "run",
        archive.has_layout() ? archive.info().run_count : 0},
       {"document starts", "document_starts_bytes",
        memory.document_starts_bytes, "document", documents},
       {"document ids", "document_ids_bytes", memory.document_ids_bytes,
        "document", documents},
       {"id filters", "id_filters_bytes", memory.id_filters_bytes, "document",
        memory.id_filters_bytes == 0 ? 0 : documents},
       {"document attributes", "document_attributes_bytes",
        memory.document_attributes_bytes, "document", documents}}};
}

double BitsPerUnit(const MemoryPart& part) {
  return part.unit_count == 0 ? 0
                              : 8 * static_cast<double>(part.size_bytes) /
                                    static_cast<double>(part.unit_count);
}

void PrintLine(const char* name, const std::string& value) {
  std::cout << absl::StrFormat("%-22s%s\n", name, value);
}

std::string MemberName(CodecId codec) {
  const CodecInfo* const info = FindCodec(codec);
  return info == nullptr ? FormatCodecSpec({.id = codec})
                         : std::string(info->name);
}

struct KeptMembers {
  std::string why;
  FoundMembers::Refused refused;
};

// Returns the members of one container that are stored unchanged, by reason.
std::vector<KeptMembers> KeptAsTheyAre(const FoundMembers& found) {
  std::vector<KeptMembers> all;
  for (size_t i = 0; i < found.refused.size(); ++i) {
    all.push_back(
        {std::string(DeflateRefusalName(static_cast<DeflateRefusal>(i))),
         found.refused[i]});
  }
  std::erase_if(
      all, [](const KeptMembers& kept) { return kept.refused.count == 0; });
  return all;
}

// `name` is that of a list of states, from the oldest on; prints nothing if it
// is empty.
void PrintStates(const char* name, const std::vector<ArchiveState>& states) {
  if (states.empty()) {
    return;
  }
  const ArchiveState& last = states.back();
  PrintLine(name,
            absl::StrCat(
                FormatCounted(states.size(), "earlier state", "earlier states"),
                ", the last ", last.uuid, " of ",
                FormatCounted(last.document_count, "document", "documents"),
                ", ", FormatByteSize(last.size_bytes)));
}

Json DescribeStates(const std::vector<ArchiveState>& states) {
  Json described = Json::array();
  for (const ArchiveState& state : states) {
    described.push_back({{"uuid", state.uuid},
                         {"size_bytes", state.size_bytes},
                         {"document_count", state.document_count}});
  }
  return described;
}

void PrintFoundMembers(const FoundMembers& found) {
  PrintLine(
      absl::StrCat(DeflateContainerName(found.container), " members").c_str(),
      absl::StrCat(FormatCount(found.count), " of ",
                   FormatByteSize(found.size_bytes), " stored as ",
                   FormatByteSize(found.text_size_bytes), " of text"));
  const InflatedMembers& inflated = found.inflated;
  // Archives of earlier programs lack this.
  if (inflated.count > 0) {
    PrintLine("  as text",
              absl::StrCat(
                  FormatCount(inflated.count), " of ",
                  FormatByteSize(inflated.size_bytes), " in ",
                  FormatByteSize(inflated.stored_size_bytes),
                  inflated.stored_size_bytes < inflated.size_bytes
                      ? absl::StrCat(": ",
                                     FormatByteSize(inflated.size_bytes -
                                                    inflated.stored_size_bytes),
                                     " saved")
                      : ""));
  }
  for (const KeptMembers& kept : KeptAsTheyAre(found)) {
    PrintLine(
        "  unchanged",
        absl::StrCat(FormatCount(kept.refused.count), " of ",
                     FormatByteSize(kept.refused.size_bytes), ": ", kept.why));
  }
}

// Sums over deposited files.
struct DepositSums {
  uint64_t count = 0;
  uint64_t size_bytes = 0;
  uint64_t literal_size_bytes = 0;
  uint64_t withdrawn_count = 0;
  uint64_t incomplete_count = 0;

  bool any() const { return count + withdrawn_count + incomplete_count > 0; }
};

DepositSums DepositSumsOf(const Archive& archive) {
  DepositSums sums;
  const DepositedFiles& deposits = archive.deposited_files();
  sums.incomplete_count = deposits.incomplete_files().size();
  for (const DepositedFile& file : deposits.files()) {
    const bool is_kept = file.state == DepositState::kKept;
    sums.count += is_kept ? 1 : 0;
    sums.withdrawn_count += is_kept ? 0 : 1;
    sums.size_bytes += file.size_bytes;
    sums.literal_size_bytes += file.literal_size_bytes;
  }
  return sums;
}

void PrintDeposits(const DepositSums& sums) {
  if (!sums.any()) {
    return;
  }
  std::string text = absl::StrCat(
      FormatCount(sums.count), ", ", FormatByteSize(sums.size_bytes),
      ", of which ", FormatByteSize(sums.literal_size_bytes), " (",
      FormatPercent(sums.literal_size_bytes, sums.size_bytes),
      ") is stored a second time");
  if (sums.withdrawn_count > 0) {
    absl::StrAppend(&text, "; ", FormatCount(sums.withdrawn_count),
                    " withdrawn");
  }
  if (sums.incomplete_count > 0) {
    absl::StrAppend(&text, "; ", FormatCount(sums.incomplete_count),
                    " incomplete, which cannot be read");
  }
  PrintLine("files", text);
}

// Captures and the size of their index, which may be damaged.
struct CaptureSums {
  CaptureIndexing indexing;
  absl::StatusOr<uint64_t> stored_size_bytes = 0;

  explicit CaptureSums(const Archive& archive)
      : indexing(IndexingOf(archive, archive.info().document_count)),
        stored_size_bytes(StoredCapturesSizeBytes(archive)) {}

  bool any() const {
    return indexing.capture_count + indexing.unindexed_document_count > 0;
  }

  double PerCapture(uint64_t amount) const {
    return indexing.capture_count == 0
               ? 0
               : static_cast<double>(amount) /
                     static_cast<double>(indexing.capture_count);
  }
};

void PrintCaptures(const CaptureSums& captures) {
  if (!captures.any()) {
    return;
  }
  const CaptureIndexing& indexing = captures.indexing;
  std::string text = FormatCount(indexing.capture_count);
  if (captures.stored_size_bytes.ok()) {
    absl::StrAppendFormat(&text, ", %s on disk, %.1f bytes per capture",
                          FormatByteSize(*captures.stored_size_bytes),
                          captures.PerCapture(*captures.stored_size_bytes));
  } else {
    absl::StrAppend(&text, ", in a damaged index");
  }
  absl::StrAppendFormat(&text, "; in memory %s, %.2f bits per capture",
                        FormatByteSize(indexing.memory_bytes),
                        8 * captures.PerCapture(indexing.memory_bytes));
  if (indexing.unindexed_document_count > 0) {
    absl::StrAppend(&text, "; an earlier version wrote ",
                    FormatCounted(indexing.unindexed_document_count, "document",
                                  "documents"),
                    " without an index");
  }
  PrintLine("captures", text);
}

void PrintText(const Archive& archive, const CaptureSums& captures) {
  const ArchiveInfo& info = archive.info();
  PrintLine("archive", PrintableMessage(RemotePaths::WithUrls(archive.path())));
  PrintLine("uuid", info.uuid);
  PrintLine("format version", absl::StrCat(info.format_version));
  PrintLine("written by", PrintableMessage(info.writer));
  if (!info.choice.empty()) {
    PrintLine("chosen", PrintableMessage(info.choice));
  }
  PrintLine("codec", FormatCodecSpec(info.codec));
  PrintLine(
      "block size",
      absl::StrCat(
          FormatByteSize(info.block_size_bytes),
          info.has_varying_blocks
              ? absl::StrCat(", cut around compressed members: "
                             "up to ",
                             FormatByteSizeExact(info.block_size_bytes_max))
              : ""));
  if (info.codec.partition_size_bytes != 0) {
    PrintLine("partition size",
              FormatByteSize(info.codec.partition_size_bytes));
  }
  PrintLine("documents", FormatCount(info.document_count));
  if (info.unread_input_count > 0) {
    PrintLine(
        "not in it",
        absl::StrCat(
            FormatCounted(info.unread_input_count, "input, file or record",
                          "inputs, files or records"),
            " that could not be read (build --keep-going, salvage)"));
    for (const std::string& unread : info.unread_inputs) {
      PrintLine("", PrintableMessage(unread));
    }
    if (info.unread_inputs.size() < info.unread_input_count) {
      PrintLine("", absl::StrCat("and ",
                                 FormatCount(info.unread_input_count -
                                             info.unread_inputs.size()),
                                 " more"));
    }
  }
  PrintLine("text", absl::StrCat(FormatByteSize(info.size_bytes), " (",
                                 FormatCount(info.size_bytes), " bytes)"));
  PrintLine("on disk",
            absl::StrCat(FormatByteSize(info.stored_size_bytes), " (",
                         FormatCount(info.stored_size_bytes), " bytes), ",
                         FormatPercent(info.stored_size_bytes, info.size_bytes),
                         " of the text"));
  if (archive.has_layout()) {
    PrintLine(
        "stored text",
        absl::StrCat(
            FormatByteSize(info.stored_text_size_bytes), ", ",
            FormatPercent(info.stored_text_size_bytes, info.size_bytes),
            " of the text, in ", FormatCounted(info.run_count, "run", "runs")));
  }
  PrintLine("segments", FormatCount(info.segment_count));
  PrintStates("history", info.history);
  PrintStates("redacted states", info.redacted_states);
  PrintLine("blocks", FormatCount(info.block_count));
  for (const MemberBlocks& member : info.members) {
    PrintLine(absl::StrCat("  in ", MemberName(member.codec)).c_str(),
              absl::StrCat(
                  FormatCount(member.block_count), ", ",
                  FormatByteSize(member.size_bytes), " of text, ",
                  FormatByteSize(member.stored_size_bytes), " stored, ",
                  FormatPercent(member.stored_size_bytes, member.size_bytes)));
  }
  for (const FoundMembers& found : info.found_members) {
    PrintFoundMembers(found);
  }
  PrintLine(
      "dictionary",
      info.dictionary_hash.empty()
          ? std::string("none")
          : absl::StrCat(FormatByteSize(info.dictionary_size_bytes), ", ",
                         FormatByteSize(info.dictionary_stored_size_bytes),
                         " on disk, hash ", info.dictionary_hash));
  PrintLine("symbol table",
            info.symbol_table_hash.empty()
                ? std::string("none")
                : absl::StrCat(FormatByteSize(info.symbol_table_size_bytes),
                               ", hash ", info.symbol_table_hash));
  for (const FieldColumn& field : archive.fields()) {
    PrintLine(&field == &archive.fields().front() ? "fields" : "",
              absl::StrCat(field.name, " ", FieldTypeName(field.type)));
  }
  PrintCaptures(captures);
  PrintDeposits(DepositSumsOf(archive));
  PrintLine("memory", FormatByteSize(archive.memory().total_bytes()));
  for (const MemoryPart& part : PartsOf(archive)) {
    std::string value = FormatByteSize(part.size_bytes);
    if (part.unit_count > 0) {
      absl::StrAppendFormat(&value, ", %.1f bits per %s", BitsPerUnit(part),
                            part.unit);
    }
    PrintLine(absl::StrCat("  ", part.title).c_str(), value);
  }
}

void PrintJson(const Archive& archive, const CaptureSums& captures) {
  const ArchiveInfo& info = archive.info();
  Json json;
  json["archive"] = RemotePaths::WithUrls(archive.path());
  json["uuid"] = info.uuid;
  json["format_version"] = info.format_version;
  json["writer"] = PrintableMessage(info.writer);
  if (!info.choice.empty()) {
    json["choice"] = PrintableMessage(info.choice);
  }
  json["codec"] = FormatCodecSpec(info.codec);
  json["block_size_bytes"] = info.block_size_bytes;
  json["block_size_bytes_max"] = info.block_size_bytes_max;
  if (info.codec.partition_size_bytes != 0) {
    json["partition_size_bytes"] = info.codec.partition_size_bytes;
  }
  json["document_count"] = info.document_count;
  json["unread_input_count"] = info.unread_input_count;
  if (!info.unread_inputs.empty()) {
    json["unread_inputs"] = info.unread_inputs;
  }
  json["size_bytes"] = info.size_bytes;
  json["stored_size_bytes"] = info.stored_size_bytes;
  json["stored_text_size_bytes"] = info.stored_text_size_bytes;
  json["run_count"] = info.run_count;
  json["segment_count"] = info.segment_count;
  json["segment_size_bytes"] = Json::array();
  for (uint32_t i = 0; i < info.segment_count; ++i) {
    const uint64_t end = i + 1 < info.segment_count
                             ? archive.SegmentStart(i + 1)
                             : info.size_bytes;
    json["segment_size_bytes"].push_back(end - archive.SegmentStart(i));
  }
  json["history"] = DescribeStates(info.history);
  json["redacted_states"] = DescribeStates(info.redacted_states);
  json["block_count"] = info.block_count;
  for (const FoundMembers& found : info.found_members) {
    Json& to = json["compressed_members"]
                   [std::string(DeflateContainerName(found.container))];
    to["count"] = found.count;
    to["size_bytes"] = found.size_bytes;
    to["text_size_bytes"] = found.text_size_bytes;
    to["inflated"] = {{"count", found.inflated.count},
                      {"size_bytes", found.inflated.size_bytes},
                      {"stored_size_bytes", found.inflated.stored_size_bytes}};
    for (const KeptMembers& kept : KeptAsTheyAre(found)) {
      Json& refused = to["kept"][kept.why];
      refused["count"] = kept.refused.count;
      refused["size_bytes"] = kept.refused.size_bytes;
    }
  }
  for (const MemberBlocks& member : info.members) {
    Json& to = json["members"][MemberName(member.codec)];
    to["block_count"] = member.block_count;
    to["size_bytes"] = member.size_bytes;
    to["stored_size_bytes"] = member.stored_size_bytes;
  }
  if (!info.dictionary_hash.empty()) {
    json["dictionary_hash"] = info.dictionary_hash;
    json["dictionary_size_bytes"] = info.dictionary_size_bytes;
    json["dictionary_stored_size_bytes"] = info.dictionary_stored_size_bytes;
  }
  if (!info.symbol_table_hash.empty()) {
    json["symbol_table_hash"] = info.symbol_table_hash;
    json["symbol_table_size_bytes"] = info.symbol_table_size_bytes;
  }
  for (const FieldColumn& field : archive.fields()) {
    json["fields"][field.name] = std::string(FieldTypeName(field.type));
  }
  if (captures.any()) {
    json["captures"] = {{"count", captures.indexing.capture_count},
                        {"unindexed_document_count",
                         captures.indexing.unindexed_document_count},
                        {"memory_bytes", captures.indexing.memory_bytes}};
    if (captures.stored_size_bytes.ok()) {
      json["captures"]["stored_size_bytes"] = *captures.stored_size_bytes;
    }
  }
  if (const DepositSums sums = DepositSumsOf(archive); sums.any()) {
    json["deposited_files"] = {{"count", sums.count},
                               {"size_bytes", sums.size_bytes},
                               {"literal_size_bytes", sums.literal_size_bytes},
                               {"withdrawn_count", sums.withdrawn_count},
                               {"incomplete_count", sums.incomplete_count}};
  }
  Json& memory = json["memory"];
  memory["total_bytes"] = archive.memory().total_bytes();
  for (const MemoryPart& part : PartsOf(archive)) {
    memory[part.json_key] = part.size_bytes;
  }
  std::cout << JsonText(json) << "\n";
}

struct InspectCommandOptions {
  std::string archive;
  StoreArguments store;
  bool json = false;
};

int RunInspect(const InspectCommandOptions& options) {
  RemotePaths paths(options.store);
  const absl::StatusOr<std::string> path = paths.OpenArchive(options.archive);
  if (absl::IsInvalidArgument(path.status())) {
    return ReportUsage("inspect", path.status().message());
  }
  const absl::StatusOr<std::shared_ptr<const Archive>> archive =
      path.ok() ? Archive::Open(*path) : path.status();
  if (!archive.ok()) {
    return ReportFailure(archive.status());
  }
  const CaptureSums captures(**archive);
  options.json ? PrintJson(**archive, captures)
               : PrintText(**archive, captures);
  return captures.stored_size_bytes.ok()
             ? kExitGood
             : ReportFailure(captures.stored_size_bytes.status());
}

}  // namespace

void AddInspectCommand(CLI::App& app, int& exit_code) {
  const auto [subcommand, options] = AddSubcommand<InspectCommandOptions>(
      app, exit_code, "inspect",
      "Print the contents of an archive and the memory for serving it",
      kInspectFooter, &RunInspect);
  AddReadArchiveArgument(*subcommand, options->archive, options->store);
  subcommand->add_flag("--json", options->json, "Print one JSON object");
}

}  // namespace quire
