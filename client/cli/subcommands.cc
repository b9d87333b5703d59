// SPDX-License-Identifier: Apache-2.0
#include "client/cli/subcommands.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

#include "client/cli/batch_items.h"
#include "client/cli/byte_span_text.h"
#include "client/cli/capture_choice.h"
#include "client/cli/damaged_scan.h"
#include "client/cli/document_filter.h"
#include "client/cli/file_subcommands.h"
#include "client/cli/shown_text.h"
#include "client/quire/archive_state.h"
#include "client/quire/capture_time.h"
#include "client/quire/client_status.h"
#include "codecs/base/archive_name.h"
#include "codecs/base/byte_size.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

std::string JsonArchive(const v1::ArchiveDescription& archive) {
  std::string json =
      absl::StrCat("{", JsonBytes("name", archive.name()), ",",
                   JsonBytes("uuid", archive.uuid()),
                   ",\"size_bytes\":", archive.size_bytes(),
                   ",\"stored_size_bytes\":", archive.stored_size_bytes(),
                   ",\"document_count\":", archive.document_count(),
                   ",\"block_count\":", archive.block_count(),
                   ",\"segment_count\":", archive.segment_count(),
                   ",\"block_size_bytes\":", archive.block_size_bytes(), ",",
                   JsonBytes("codec", archive.codec()));
  if (archive.has_dictionary_hash()) {
    absl::StrAppend(
        &json, ",", JsonBytes("dictionary_hash", archive.dictionary_hash()),
        ",\"dictionary_size_bytes\":", archive.dictionary_size_bytes());
  }
  if (archive.fields_size() > 0) {
    absl::StrAppend(
        &json, ",\"fields\":[",
        absl::StrJoin(archive.fields(), ",",
                      [](std::string* out, const v1::FieldDescription& field) {
                        absl::StrAppend(
                            out, "{", JsonBytes("name", field.name()),
                            ",\"type\":\"", FieldTypeText(field.type()), "\"}");
                      }),
        "]");
  }
  if (archive.has_capture_count()) {
    absl::StrAppend(&json, ",\"capture_count\":", archive.capture_count());
  }
  if (archive.history_size() > 0) {
    absl::StrAppend(
        &json, ",\"history\":[",
        absl::StrJoin(archive.history(), ",",
                      [](std::string* out, const v1::EarlierState& state) {
                        absl::StrAppend(
                            out, "{", JsonBytes("uuid", state.uuid()),
                            ",\"size_bytes\":", state.size_bytes(),
                            ",\"document_count\":", state.document_count(),
                            "}");
                      }),
        "]");
  }
  return json + "}\n";
}

std::string Percent(uint64_t part, uint64_t whole) {
  return whole == 0
             ? "-"
             : absl::StrFormat("%.1f %%", 100.0 * static_cast<double>(part) /
                                              static_cast<double>(whole));
}

// " --uuid UUID" for a command that users paste into a shell; empty if the
// server's uuid is not one word of letters, digits and dashes.
std::string UuidOption(absl::string_view uuid) {
  const bool is_plain = std::all_of(uuid.begin(), uuid.end(), [](char c) {
    return c == '-' || absl::ascii_isalnum(static_cast<unsigned char>(c));
  });
  return is_plain && !uuid.empty() && uuid.front() != '-'
             ? absl::StrCat(" --uuid ", uuid)
             : "";
}

}  // namespace

absl::Status RunArchives(CliRun& run) {
  QUIRE_ASSIGN_OR_RETURN(const std::vector<v1::ArchiveDescription> archives,
                         run.client().ListArchives());
  if (run.settings().json) {
    for (const v1::ArchiveDescription& archive : archives) {
      QUIRE_RETURN_IF_ERROR(run.output().Write(JsonArchive(archive)));
    }
    return absl::OkStatus();
  }
  if (archives.empty()) {
    run.Note("the server holds no archives");
    return absl::OkStatus();
  }
  size_t width = 4;
  for (const v1::ArchiveDescription& archive : archives) {
    width = std::max(width, archive.name().size());
  }
  // No archive has a longer name; a faulty server may say so.
  width = std::min(width, kArchiveNameSizeMax);
  std::string table =
      absl::StrFormat("%-*s  %12s  %10s  %10s  %s\n", static_cast<int>(width),
                      "NAME", "DOCUMENTS", "SIZE", "STORED", "CODEC");
  for (const v1::ArchiveDescription& archive : archives) {
    if (archive.uuid().empty()) {
      absl::StrAppendFormat(&table, "%-*s  %12s  %10s  %10s  %s\n",
                            static_cast<int>(width),
                            PrintableText(archive.name()), "-", "-", "-",
                            "-  (opened on first use)");
      continue;
    }
    absl::StrAppendFormat(
        &table, "%-*s  %12s  %10s  %10s  %s%s\n", static_cast<int>(width),
        PrintableText(archive.name()), FormatCount(archive.document_count()),
        FormatByteSize(archive.size_bytes()),
        FormatByteSize(archive.stored_size_bytes()),
        PrintableText(archive.codec()),
        archive.state() == v1::ARCHIVE_STATE_OPENING ? "  (not open yet)"
        : archive.state() == v1::ARCHIVE_STATE_CLOSED
            ? "  (opened on first use)"
            : "");
  }
  return run.output().Write(table);
}

absl::Status RunInfo(CliRun& run) {
  QUIRE_ASSIGN_OR_RETURN(const v1::ArchiveDescription archive,
                         run.client().GetArchive(run.settings().archive));
  if (run.settings().json) {
    return run.output().Write(JsonArchive(archive));
  }
  const auto size = [](uint64_t size_bytes) {
    return absl::StrCat(FormatByteSize(size_bytes), " (",
                        FormatCount(size_bytes), " bytes)");
  };
  std::string text = absl::StrCat(
      "name:        ", PrintableText(archive.name()), "\n",
      "uuid:        ", PrintableText(archive.uuid()), "\n",
      "documents:   ", FormatCount(archive.document_count()), "\n",
      "size:        ", size(archive.size_bytes()), "\n",
      "stored:      ", size(archive.stored_size_bytes()), ", ",
      Percent(archive.stored_size_bytes(), archive.size_bytes()), "\n",
      "codec:       ", PrintableText(archive.codec()), "\n",
      "block size:  ", FormatByteSize(archive.block_size_bytes()), "\n",
      "blocks:      ", FormatCount(archive.block_count()), "\n",
      "segments:    ", FormatCount(archive.segment_count()), "\n");
  if (archive.has_dictionary_hash()) {
    absl::StrAppend(&text,
                    "dictionary:  ", size(archive.dictionary_size_bytes()),
                    ", ", PrintableText(archive.dictionary_hash()), "\n");
  }
  if (archive.fields_size() > 0) {
    absl::StrAppend(
        &text, "fields:      ",
        absl::StrJoin(archive.fields(), ", ",
                      [](std::string* out, const v1::FieldDescription& field) {
                        absl::StrAppend(out, PrintableText(field.name()), " (",
                                        FieldTypeText(field.type()), ")");
                      }),
        "\n");
  }
  if (archive.has_capture_count()) {
    absl::StrAppend(
        &text, "captures:    ", FormatCount(archive.capture_count()), "\n");
  }
  if (archive.history_size() > 0) {
    const v1::EarlierState& last = *archive.history().rbegin();
    absl::StrAppend(
        &text, "history:     ",
        FormatCounted(static_cast<uint64_t>(archive.history_size()),
                      "earlier state", "earlier states"),
        ", the last ", PrintableText(last.uuid()), " of ",
        FormatCounted(last.document_count(), "document", "documents"), "\n");
  }
  return run.output().Write(text);
}

namespace {

// Prints a document, or of a crawl what it carries, for `quire get`.
absl::Status PrintDocument(CliRun& run, const DocumentFilter& filter,
                           const DocumentKey& target) {
  const CliSettings& settings = run.settings();
  DocumentKey chosen = target;
  if (settings.captures.by_key || settings.captures.closest.has_value()) {
    CaptureSelection selection = {
        .url = std::get<std::string>(target.name),
        .is_key = settings.captures.by_key,
        .prefers_pages = !settings.whole_records && !settings.part.has_value()};
    if (settings.captures.closest.has_value()) {
      QUIRE_ASSIGN_OR_RETURN(
          selection.closest,
          ParseNamedTime("--closest", *settings.captures.closest));
    }
    QUIRE_ASSIGN_OR_RETURN(chosen, FindIndexedCapture(run, selection, filter));
    chosen.part = target.part;
  } else if (filter.needs_status()) {
    QUIRE_ASSIGN_OR_RETURN(chosen, ChooseCapture(run, target, filter));
    chosen.part = target.part;
  }
  return run.Print(chosen, /*payload=*/!settings.whole_records &&
                               !settings.part.has_value());
}

}  // namespace

absl::Status RunGet(CliRun& run) {
  const CliSettings& settings = run.settings();
  if (!settings.files.empty()) {
    return GetFiles(run);
  }
  if (settings.ids.empty()) {
    return absl::InvalidArgumentError(
        "get needs an ID, or a deposited file by --file");
  }
  // The part of each id's target that options set.
  DocumentKey selected;
  if (settings.part.has_value()) {
    QUIRE_ASSIGN_OR_RETURN(selected.part, ParsePart(*settings.part));
  }
  selected.occurrence = settings.occurrence;
  QUIRE_ASSIGN_OR_RETURN(selected.record_types,
                         ParseRecordTypes(settings.filter.record_types));
  QUIRE_ASSIGN_OR_RETURN(const DocumentFilter filter,
                         DocumentFilter::Make(settings.filter));
  if (settings.at.has_value()) {
    QUIRE_ASSIGN_OR_RETURN(const CapturePeriod at,
                           ParseNamedTime("--at", *settings.at));
    selected.at_time_ms = at.last_ms;
  }
  std::vector<DocumentKey> targets;
  for (const std::string& id : settings.ids) {
    if (!settings.by_ordinal) {
      DocumentKey key = selected;
      key.name = id;
      targets.push_back(std::move(key));
      continue;
    }
    uint64_t ordinal = 0;
    if (!absl::SimpleAtoi(id, &ordinal)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "with --ordinal, ID must be the number of a document, a ",
          "whole number from 0, got ", QuotedText(id)));
    }
    DocumentKey key = DocumentKey::Ordinal(ordinal);
    key.part = selected.part;
    targets.push_back(std::move(key));
  }
  for (const DocumentKey& target : targets) {
    const absl::Status status = PrintDocument(run, filter, target);
    if (IsClosedOutput(status) || absl::IsFailedPrecondition(status)) {
      return status;
    }
    if (!status.ok()) {
      run.Complain(
          DescribeTarget(target),
          WhyNotRead(target, status, "--record prints the record whole"));
    }
    // Each further one would wait as long.
    if (run.unreachable()) {
      break;
    }
  }
  return absl::OkStatus();
}

absl::Status RunRange(CliRun& run) {
  const CliSettings& settings = run.settings();
  ByteSpan span;
  QUIRE_ASSIGN_OR_RETURN(span.offset,
                         ParseNamedSize("OFFSET", settings.offset));
  QUIRE_ASSIGN_OR_RETURN(
      span.size_bytes, ParseNamedSize("LENGTH", settings.length.value_or("")));
  run.progress().SetTotal(span.size_bytes);
  return run.Print(span, /*payload=*/false);
}

namespace {

// Scans an archive to the output.
class ScanOutput {
 public:
  explicit ScanOutput(CliRun& run) : run_(run) {}

  absl::Status Run(const ScanOptions& options) {
    next_offset_ = options.offset;
    return ScanPastDamage(
        run_.client(), run_.settings().archive, options,
        [this](const ScanPiece& piece) { return Take(piece); },
        [this](const LostText& found) {
          lost_ = found;
          return found.status;
        });
  }

  // Bytes taken, of all runs together.
  uint64_t taken_size_bytes() const { return taken_size_bytes_; }

  // Text that could not be read and ended the last run.
  const std::optional<LostText>& lost() const { return lost_; }

  // In logical order: the end of what was written.
  uint64_t next_offset() const { return next_offset_; }

  // The output has text in another order.
  bool has_holes() const { return has_holes_; }

 private:
  absl::Status Take(const ScanPiece& piece) {
    for (const ScanPlace& place : piece.places) {
      taken_size_bytes_ += place.data.size();
      run_.progress().Add(place.data.size(), 0);
      QUIRE_RETURN_IF_ERROR(run_.output().WriteAt(place.offset, place.data));
    }
    if (!piece.places.empty()) {
      has_holes_ = true;
      return absl::OkStatus();
    }
    taken_size_bytes_ += piece.data.size();
    run_.progress().Add(piece.data.size(), 0);
    QUIRE_RETURN_IF_ERROR(run_.WriteData(piece.data));
    next_offset_ = piece.offset + piece.data.size();
    return absl::OkStatus();
  }

  CliRun& run_;
  uint64_t taken_size_bytes_ = 0;
  std::optional<LostText> lost_;
  uint64_t next_offset_ = 0;
  bool has_holes_ = false;
};

// Returns the command line of a scan of the same archive, for a shell.
std::string ScanCommand(const CliSettings& settings) {
  if (!settings.archive_path.has_value()) {
    return absl::StrCat("quire scan ", settings.archive);
  }
  return absl::StrCat(
      "quire --archive '",
      absl::StrReplaceAll(*settings.archive_path, {{"'", R"('\'')"}}),
      "' scan");
}

// Prints how to continue a scan that failed.
void NoteRestOfScan(CliRun& run, const ScanOptions& options,
                    const ScanOutput& output, const absl::Status& status) {
  const std::string command_line = ScanCommand(run.settings());
  uint64_t next_offset = output.next_offset();
  if (output.lost().has_value()) {
    const LostText& lost = *output.lost();
    next_offset = lost.offset + lost.size_bytes;
    run.Note(absl::StrCat(
        "the ", FormatCounted(lost.size_bytes, "byte", "bytes"), " at offset ",
        lost.offset, " cannot be read; the rest begins behind them"));
  }
  // There is no rest to continue with if the archive was replaced.
  if (next_offset > options.offset && !IsOfOtherContents(status) &&
      !output.has_holes()) {
    std::string command =
        absl::StrCat(command_line, UuidOption(*options.archive_uuid),
                     " --offset ", next_offset);
    if (options.size_bytes.has_value()) {
      absl::StrAppend(&command, " --length ",
                      options.offset + *options.size_bytes - next_offset);
    }
    run.SetContinuation(std::move(command));
  }
  if (output.has_holes()) {
    run.Note(absl::StrCat(
        "what came is not kept, as this archive's text does not come in its "
        "own order; ",
        command_line, " > FILE takes longer and keeps what it has"));
  }
}

}  // namespace

absl::Status RunScan(CliRun& run) {
  const CliSettings& settings = run.settings();
  if (settings.json) {
    return absl::InvalidArgumentError(
        "scan prints the bytes themselves and has no --json; ls --json and "
        "batch --json do");
  }
  ScanOptions options;
  QUIRE_ASSIGN_OR_RETURN(options.offset,
                         ParseNamedSize("--offset", settings.offset));
  if (settings.length.has_value()) {
    QUIRE_ASSIGN_OR_RETURN(options.size_bytes,
                           ParseNamedSize("--length", *settings.length));
  }
  QUIRE_ASSIGN_OR_RETURN(const v1::ArchiveDescription archive,
                         run.client().GetArchive(settings.archive));
  options.archive_uuid = settings.archive_uuid.value_or(archive.uuid());
  const uint64_t end = FindState(archive, *options.archive_uuid)
                           .value_or(v1::EarlierState())
                           .size_bytes();
  const uint64_t size_bytes =
      options.size_bytes.value_or(end - std::min(options.offset, end));
  run.progress().SetTotal(size_bytes);
  // Into a file that is written aside, its bytes may come in any order.
  options.stored_order = run.output().is_aside() && options.offset == 0 &&
                         !options.size_bytes.has_value();
  ScanOutput output(run);
  absl::Status status = output.Run(options);
  // The order may be gone while the contents are there: an append has joined
  // parts of the archive, or documents were withdrawn. The logical order
  // overwrites all that was written.
  if (options.stored_order &&
      (IsOfOtherContents(status) ||
       (absl::IsFailedPrecondition(status) && IsWithdrawn(status)))) {
    options.stored_order = false;
    run.progress().SetTotal(output.taken_size_bytes() + size_bytes);
    status = output.Run(options);
  }
  if (!status.ok()) {
    NoteRestOfScan(run, options, output, status);
  }
  return status;
}

}  // namespace quire
