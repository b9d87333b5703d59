// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/commands/build_summary.h"

#include <cstdint>
#include <filesystem>
#include <iostream>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/printable_text.h"
#include "codecs/block_codec.h"
#include "codecs/payload/recipe.h"
#include "server/archive/deposits/deposit_page.h"
#include "server/commands/subcommand_support.h"
#include "server/ingest/sources/archive_source.h"

namespace quire {
namespace {

// Prints the files that are not kept.
void PrintRefusals(const DepositSummary& deposits) {
  for (const std::string& refusal : deposits.refusals) {
    std::cerr << "  " << PrintableMessage(refusal) << "\n";
  }
  if (deposits.refused_count > deposits.refusals.size()) {
    std::cerr << "  and "
              << FormatCount(deposits.refused_count - deposits.refusals.size())
              << " more\n";
  }
}

}  // namespace

Progress ToProgress(const BuildProgress& progress) {
  Progress state;
  state.size_bytes = progress.done_bytes;
  state.size_bytes_total = progress.total_bytes;
  switch (progress.phase) {
    case BuildPhase::kCompare:
      state.phase = "comparing";
      break;
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
    case BuildPhase::kTrial:
      state.phase = "trying the order";
      break;
    case BuildPhase::kIndex:
      state.phase = "indexing the dictionary";
      break;
    case BuildPhase::kCheckKept:
      state.phase = "checking kept blocks";
      break;
    case BuildPhase::kEncode:
      state.phase = "encoding";
      state.size_bytes -= progress.kept_bytes;
      state.size_bytes_total =
          progress.total_bytes.value_or(0) - progress.kept_bytes;
      state.stored_size_bytes = progress.stored_bytes;
      break;
    case BuildPhase::kFinish:
      state.phase = "finishing";
      break;
  }
  return state;
}

void PrintDeposits(const DepositSummary& deposits) {
  if (deposits.file_count > 0) {
    std::cerr << "  "
              << FormatCounted(deposits.file_count,
                               "deposited file is kept byte for byte",
                               "deposited files are kept byte for byte")
              << ", " << FormatByteSize(deposits.size_bytes);
    const DepositSource::Counts& members = deposits.members;
    if (deposits.literal_size_bytes > 0) {
      std::cerr << ", of which " << FormatByteSize(deposits.literal_size_bytes)
                << " is stored a second time ("
                << FormatPercent(deposits.literal_size_bytes,
                                 deposits.size_bytes)
                << "): of "
                << FormatCounted(members.reproduced_count +
                                     members.foreign_count +
                                     members.large_count,
                                 "member", "members")
                << ", " << FormatCount(members.foreign_count)
                << " of an unknown encoder, and "
                << FormatCount(members.large_count) << " with over "
                << FormatByteSize(kDepositMemberTextSizeMax) << " of text";
    }
    std::cerr << "\n";
  }
  if (deposits.refused_count > 0 && deposits.lost_count == 0) {
    std::cerr << "  "
              << FormatCounted(deposits.refused_count, "file is", "files are")
              << " not kept byte for byte, only documents of it:\n";
    PrintRefusals(deposits);
  }
}

void PrintWarnings(const BuildSummary& summary, const Archive& archive) {
  if (summary.mismatched_block_count > 0) {
    std::cerr << "warning: "
              << FormatCounted(summary.mismatched_block_count, "block",
                               "blocks")
              << " did not decode to their text and are stored without "
                 "compression; the archive is correct, but codec "
              << FormatCodecSpec(archive.info().codec)
              << " has a bug: please report it\n";
  }
  for (const std::vector<std::string>* const texts :
       {&summary.omissions, &summary.field_notes}) {
    for (const std::string& text : *texts) {
      std::cerr << "warning: " << PrintableMessage(text) << "\n";
    }
  }
  if (summary.deposits.lost_count > 0) {
    std::cerr << "warning: "
              << FormatCounted(summary.deposits.lost_count, "file is",
                               "files are")
              << " not kept byte for byte, only documents of it:\n";
    PrintRefusals(summary.deposits);
  }
  const DroppedAttributes& dropped = summary.dropped_attributes;
  if (dropped.count > 0) {
    std::cerr << "warning: "
              << FormatCounted(dropped.count, "attribute was",
                               "attributes were")
              << " over the limits of an archive and left out; the first: "
              << PrintableMessage(dropped.first) << "\n";
  }
  if (archive.info().document_count == 0 && summary.text_size_bytes == 0) {
    std::cerr << "warning: the inputs hold no documents\n";
  }
}

void PrintFields(const BuildSummary& summary) {
  if (!summary.fields.empty()) {
    std::cerr << "  fields: "
              << absl::StrJoin(summary.fields, ", ",
                               [](std::string* out, const FieldColumn& field) {
                                 absl::StrAppend(out, field.name, " ",
                                                 FieldTypeName(field.type));
                               })
              << "\n";
  }
}

// Prints what archives do not keep of the inputs.
void PrintDropped(const BuildSummary& summary) {
  std::vector<std::string> parts;
  const auto add = [&parts](uint64_t count, const char* one, const char* many) {
    if (count > 0) {
      parts.push_back(FormatCounted(count, one, many));
    }
  };
  add(summary.dropped_attributes.mode_count, "mode", "modes");
  add(summary.dropped_attributes.owner_count, "owner", "owners");
  add(summary.skipped.symbolic_links, "symbolic link", "symbolic links");
  if (!parts.empty()) {
    std::cerr << "  not kept of files: " << absl::StrJoin(parts, ", ") << "\n";
  }
}

// Prints the members that --inflate skipped because of their size.
void PrintOversizedMembers(const BuildOptions& options,
                           const BuildSummary& summary) {
  const FoundMembers::Refused& members = summary.oversized_members;
  if (members.count == 0) {
    return;
  }
  const uint64_t size_max = options.inflate_member_size_bytes_max;
  std::cerr << "  "
            << FormatCounted(members.count,
                             "compressed member is stored unchanged",
                             "compressed members are stored unchanged")
            << ", " << FormatByteSize(members.size_bytes) << ": more text than "
            << FormatByteSize(size_max)
            << (size_max < kInflatedLargeSizeMax
                    ? absl::StrCat("; --inflate-member-size takes up to ",
                                   FormatByteSizeExact(kInflatedLargeSizeMax))
                    : ", or more than 1 MiB compressed")
            << "\n";
}

void PrintResumeHint(const std::string& output) {
  std::error_code error;
  const std::string partial = absl::StrCat(output, ".partial");
  if (std::filesystem::exists(absl::StrCat(partial, "/JOURNAL"), error)) {
    std::cerr << PrintableMessage(partial)
              << " has the finished part: repeat the command to resume, or add "
                 "--restart to start over\n";
  }
}

void PrintDroppedWarning(const std::string& output) {
  std::cerr << "warning: " << PrintableMessage(output)
            << ".partial is from another version of quired or from a build "
               "without --resume, or its JOURNAL is damaged; starting over\n";
}

void PrintDictionary(const std::string& output, const BuildSummary& summary,
                     const Archive& archive, double seconds) {
  const ArchiveInfo& info = archive.info();
  std::cerr << PrintableMessage(output) << ": no documents yet, codec "
            << FormatCodecSpec(info.codec) << ", blocks of "
            << FormatByteSize(info.block_size_bytes);
  if (info.dictionary_size_bytes > 0) {
    std::cerr << ", dictionary of "
              << FormatByteSize(info.dictionary_size_bytes) << " ("
              << FormatByteSize(info.dictionary_stored_size_bytes)
              << " on disk)";
  }
  std::cerr << "\n  " << summary.choice.reason << "\n  chosen in "
            << FormatDuration(seconds) << " from "
            << FormatByteSize(summary.text_size_bytes)
            << " of text; build parts with quired build --like "
            << PrintableMessage(output) << "\n";
}

void PrintSummary(const std::string& output, const BuildOptions& options,
                  const BuildSummary& summary, const Archive& archive,
                  double seconds) {
  const ArchiveInfo& info = archive.info();
  std::cerr << PrintableMessage(output) << ": "
            << FormatCounted(info.document_count, "document", "documents")
            << ", " << FormatByteSize(info.size_bytes) << " in "
            << FormatCounted(info.block_count, "block", "blocks") << " of "
            << FormatByteSize(info.block_size_bytes) << ", codec "
            << FormatCodecSpec(info.codec)
            << (info.codec.partition_size_bytes == 0
                    ? std::string()
                    : absl::StrCat(
                          " in partitions of ",
                          FormatByteSize(info.codec.partition_size_bytes)))
            << "\n"
            << "  on disk " << FormatByteSize(info.stored_size_bytes) << ", "
            << FormatPercent(info.stored_size_bytes, info.size_bytes)
            << " of the text";
  if (info.dictionary_size_bytes > 0) {
    std::cerr << ", dictionary included ("
              << FormatByteSize(info.dictionary_stored_size_bytes) << ")";
  }
  std::cerr << "\n  " << summary.choice.reason << "\n  built in "
            << FormatDuration(seconds) << ", "
            << FormatRate(info.size_bytes, seconds) << "\n"
            << "  serving it takes "
            << FormatByteSize(archive.memory().total_bytes())
            << " of memory in addition to the block cache\n";
  const uint64_t incompressible_count =
      summary.raw_block_count - summary.mismatched_block_count;
  if (incompressible_count > 0) {
    std::cerr << "  "
              << FormatCounted(
                     incompressible_count,
                     "block did not shrink and is stored uncompressed",
                     "blocks did not shrink and are stored uncompressed")
              << "\n";
  }
  if (summary.kept_block_count > 0) {
    std::cerr << "  "
              << FormatCounted(summary.kept_block_count,
                               "block was kept from an earlier run",
                               "blocks were kept from an earlier run")
              << "\n";
  }
  if (summary.copied_block_count > 0) {
    std::cerr << "  "
              << FormatCounted(summary.copied_block_count,
                               "block was copied unchanged",
                               "blocks were copied unchanged")
              << "\n";
  }
  PrintFields(summary);
  PrintOversizedMembers(options, summary);
  PrintDropped(summary);
  PrintDeposits(summary.deposits);
  const uint64_t repeated_count = CountRepeatedIds(archive);
  if (repeated_count > 0) {
    std::cerr << "  "
              << FormatCounted(repeated_count, "document repeats an earlier id",
                               "documents repeat an earlier id")
              << "; an id reads the newest of them, or the newest response of "
                 "a crawl\n";
  }
}

}  // namespace quire
