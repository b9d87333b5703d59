// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/repair/archive_salvage.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "codecs/payload/payload_codec.h"
#include "server/archive/deposits/deposit_directory.h"
#include "server/archive/fields/field_directory.h"
#include "server/archive/files/archive_directory.h"
#include "server/archive/files/dictionary_file.h"
#include "server/archive/files/file_io.h"
#include "server/archive/files/symbol_table_file.h"
#include "server/archive/format/archive_format.h"
#include "server/archive/format/manifest.h"
#include "server/archive/format/segment_format.h"
#include "server/archive/repair/manifest_recovery.h"
#include "server/archive/repair/salvaged_fields.h"
#include "server/archive/segment_reader.h"
#include "server/archive/segment_text.h"

namespace quire {
namespace {

class Salvage {
 public:
  Salvage(ArchiveDirectory directory, SalvageOutput& output,
          const SalvageCallbacks& callbacks, SalvageReport& report)
      : directory_(std::move(directory)),
        output_(output),
        callbacks_(callbacks),
        report_(report) {}

  absl::Status Run() {
    MakeCodec();
    for (const ManifestSegment& expected : directory_.manifest.segments) {
      QUIRE_RETURN_IF_ERROR(SaveSegment(expected));
      segment_start_ += expected.size_bytes;
      first_ordinal_ += expected.document_count;
    }
    return output_.Finish(report_.lost_count);
  }

 private:
  void Damage(const absl::Status& status) {
    ++report_.damage_count;
    callbacks_.on_damage(status);
  }

  absl::StatusOr<ReadableFile> OpenFile(const std::string& name) const {
    return OpenReadableFile(directory_.fd.get(), name,
                            absl::StrCat(directory_.path, "/", name));
  }

  void MakeCodec() {
    const Manifest& manifest = directory_.manifest;
    auto context = std::make_shared<CodecContext>();
    bool is_usable = true;
    if (manifest.dictionary.has_value()) {
      const auto file = OpenFile(DictionaryFileName(manifest.dictionary->hash));
      auto text = file.ok() ? ReadDictionaryFile(*file, *manifest.dictionary)
                            : file.status();
      if (text.ok()) {
        context->dictionary = *std::move(text);
      } else {
        is_usable = false;
        Damage(absl::DataLossError(
            absl::StrCat(text.status().message(),
                         "; only blocks that are stored as text can be read")));
      }
    }
    const CodecInfo& info = *FindCodec(manifest.codec.id);
    if (manifest.symbol_table.has_value() && info.needs_symbol_table) {
      const auto file =
          OpenFile(SymbolTableFileName(manifest.symbol_table->hash));
      auto table = file.ok()
                       ? ReadSymbolTableFile(*file, *manifest.symbol_table)
                       : file.status();
      if (table.ok()) {
        context->symbol_table = *std::move(table);
      } else {
        is_usable = false;
        Damage(absl::DataLossError(
            absl::StrCat(table.status().message(),
                         "; only blocks that are stored as text can be read")));
      }
    }
    if (!is_usable) {
      return;
    }
    auto codec =
        MakePayloadCodec(manifest.codec, context, CodecUse::kDecode,
                         manifest.has_recipes ? kInflatedLargeSizeMax : 0);
    if (codec.ok()) {
      codec_ = *std::move(codec);
    } else {
      Damage(InFile(directory_.path, codec.status()));
    }
  }

  absl::Status SaveSegment(const ManifestSegment& expected) {
    std::string note;
    const auto file =
        OpenSegmentFile(directory_, expected.number, DirectIo::kOff, note);
    std::vector<absl::Status> damages;
    const auto segment =
        file.ok() ? SegmentReader::OpenDamaged(*file, directory_.manifest,
                                               expected, codec_.get(), damages)
                  : file.status();
    for (const absl::Status& damage : damages) {
      Damage(damage);
    }
    if (!segment.ok()) {
      report_.lost_count += expected.document_count;
      Damage(absl::DataLossError(absl::StrCat(
          segment.status().message(), "; lost: ",
          FormatCounted(expected.document_count, "document", "documents"),
          " from number ", first_ordinal_, ", ", expected.size_bytes,
          " bytes from ", segment_start_)));
      return absl::OkStatus();
    }
    report_.unproved_section_count += segment->unproved_section_count();
    const std::vector<size_t> columns = ChooseFields(*segment, expected);
    std::vector<FieldColumn> described;
    described.reserve(columns.size());
    for (const size_t column : columns) {
      described.push_back(segment->fields().columns()[column]);
    }
    if (const uint64_t count = segment->container().captures.capture_count;
        count > 0) {
      Damage(absl::DataLossError(absl::StrCat(
          segment->file(), ": the index of ",
          FormatCounted(count, "capture", "captures"),
          " is not saved; quired build of the saved records makes it again, "
          "and while the archive opens, quired build of it keeps it")));
    }
    QUIRE_RETURN_IF_ERROR(output_.BeginSegment(described));
    SalvagedFields fields(
        *segment, columns, first_ordinal_,
        [this](const absl::Status& damage) { Damage(damage); });
    for (const DepositPortion& portion : segment->deposits().portions()) {
      if (portion.state == DepositState::kKept) {
        ++report_.unsaved_file_count;
        Damage(absl::DataLossError(absl::StrCat(
            segment->file(), ": deposited file ", QuotedText(portion.path),
            " is not saved, only its documents; while the archive opens, "
            "quire get --file reads it")));
      }
    }
    SegmentText text(*segment, codec_.get(),
                     directory_.manifest.block_size_bytes_max);
    for (uint64_t i = 0; i < segment->documents().count(); ++i) {
      QUIRE_RETURN_IF_ERROR(
          SaveDocument(segment->documents(), i, text, fields));
    }
    return absl::OkStatus();
  }

  // Returns the columns of the segment that are saved, and names the others.
  std::vector<size_t> ChooseFields(const SegmentReader& segment,
                                   const ManifestSegment& expected) {
    const std::vector<FieldColumn>& columns = segment.fields().columns();
    std::vector<std::string> problems;
    std::vector<size_t> chosen;
    if (!columns.empty() && !output_.keeps_fields()) {
      problems.push_back(absl::StrCat(
          "the fields of its documents (",
          absl::StrJoin(columns, ", ",
                        [](std::string* out, const FieldColumn& field) {
                          out->append(field.name);
                        }),
          ") are not saved; an output NAME.quire keeps them"));
    } else {
      for (size_t i = 0; i < columns.size(); ++i) {
        const absl::Status joined = JoinColumn(columns[i], fields_);
        if (joined.ok()) {
          chosen.push_back(i);
        } else {
          problems.push_back(
              absl::StrCat(joined.message(), "; its values are not saved"));
        }
      }
    }
    if (segment.container().has_unknown_parts) {
      problems.push_back(
          "its container has parts that this program does not know, which are "
          "not saved: use a newer one");
    } else if (columns.empty() && HasContainer(expected)) {
      problems.push_back(
          "the fields of its documents are not saved, since their description "
          "is damaged");
    }
    report_.unsaved_fields_count += problems.empty() ? 0 : 1;
    for (const std::string& problem : problems) {
      Damage(absl::DataLossError(absl::StrCat(segment.file(), ": ", problem)));
    }
    return chosen;
  }

  static bool HasContainer(const ManifestSegment& expected) {
    return std::ranges::any_of(
        expected.sections, [](const ManifestSection& section) {
          return section.type ==
                 static_cast<uint32_t>(SectionType::kContainerDirectory);
        });
  }

  absl::Status SaveDocument(const DocumentIndex& documents, uint64_t ordinal,
                            SegmentText& text, SalvagedFields& fields) {
    LostDocument lost;
    lost.has_id = documents.ids().size() == documents.count();
    lost.document = documents.Describe(ordinal);
    lost.document.id = documents.Id(ordinal);
    if (lost.has_id && IsRedacted(lost.document)) {
      return absl::OkStatus();
    }
    const LogicalRange local = lost.document.range;
    lost.document.ordinal.value = first_ordinal_ + ordinal;
    lost.document.range.offset.value += segment_start_;
    const bool is_held = local.size_bytes <= kSalvageHeldSizeBytesMax;
    std::string held;
    uint64_t position = 0;
    QUIRE_RETURN_IF_ERROR(text.Visit(
        local.offset.value, local.size_bytes,
        [&](uint64_t size_bytes, const absl::StatusOr<ByteView>& part) {
          if (!part.ok()) {
            AddLost(position, size_bytes, part.status(), lost);
          } else if (is_held) {
            held.append(AsText(*part).data(), part->size());
          }
          position += size_bytes;
          return absl::OkStatus();
        }));
    if (!lost.lost.empty()) {
      Lose(lost);
      return absl::OkStatus();
    }
    uint64_t lost_value_count = 0;
    const absl::Span<const FieldValue> values =
        fields.Read(ordinal, lost_value_count);
    QUIRE_ASSIGN_OR_RETURN(const std::string name,
                           output_.Begin(lost.document, lost.has_id, values));
    if (is_held) {
      QUIRE_RETURN_IF_ERROR(output_.Write(AsBytes(held)));
    } else {
      position = 0;
      QUIRE_RETURN_IF_ERROR(text.Visit(
          local.offset.value, local.size_bytes,
          [&](uint64_t size_bytes, const absl::StatusOr<ByteView>& part) {
            if (!part.ok()) {
              AddLost(position, size_bytes, part.status(), lost);
            }
            position += size_bytes;
            return lost.lost.empty() ? output_.Write(*part) : absl::OkStatus();
          }));
      // A drive may fail to read a sector that it has read before.
      if (!lost.lost.empty()) {
        Lose(lost);
        return output_.Drop();
      }
    }
    if (!lost.has_id || name != lost.document.id) {
      callbacks_.on_renamed(lost.document, name);
    }
    ++report_.saved_count;
    report_.saved_size_bytes += local.size_bytes;
    report_.lost_field_value_count += lost_value_count;
    return output_.End();
  }

  void Lose(const LostDocument& lost) {
    ++report_.lost_count;
    callbacks_.on_lost(lost);
  }

  static void AddLost(uint64_t offset, uint64_t size_bytes,
                      const absl::Status& status, LostDocument& lost) {
    if (lost.lost.empty()) {
      lost.status = status;
    } else if (LogicalRange& last = lost.lost.back();
               last.offset.value + last.size_bytes == offset) {
      last.size_bytes += size_bytes;
      return;
    }
    lost.lost.push_back({{offset}, size_bytes});
  }

  const ArchiveDirectory directory_;
  SalvageOutput& output_;
  const SalvageCallbacks& callbacks_;
  SalvageReport& report_;
  // Null if dictionary or symbol table are damaged.
  std::unique_ptr<const PayloadCodec> codec_;
  uint64_t segment_start_ = 0;
  uint64_t first_ordinal_ = 0;
  // Columns of all segments so far that are saved.
  std::vector<FieldColumn> fields_;
};

}  // namespace

absl::StatusOr<SalvageReport> SalvageArchive(
    const std::string& path, SalvageOutput& output,
    const SalvageCallbacks& callbacks) {
  SalvageReport report;
  QUIRE_ASSIGN_OR_RETURN(ArchiveDirectory directory, OpenDirectoryOnly(path));
  if (const absl::Status manifest = ReadManifest(directory); !manifest.ok()) {
    report.has_manifest = false;
    const auto on_damage = [&](const absl::Status& status) {
      ++report.damage_count;
      callbacks.on_damage(status);
    };
    on_damage(manifest);
    const auto on_left_out = [&](const absl::Status& status) {
      ++report.left_out_segment_count;
      on_damage(status);
    };
    QUIRE_RETURN_IF_ERROR(ManifestRecovery(directory, on_left_out).Run());
  }
  QUIRE_RETURN_IF_ERROR(
      Salvage(std::move(directory), output, callbacks, report).Run());
  return report;
}

}  // namespace quire
