// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/repair/archive_salvage.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/status_macros.h"
#include "codecs/payload/payload_codec.h"
#include "server/archive/files/archive_directory.h"
#include "server/archive/files/dictionary_file.h"
#include "server/archive/files/symbol_table_file.h"
#include "server/archive/format/archive_format.h"
#include "server/archive/format/segment_format.h"
#include "server/archive/segment_reader.h"
#include "server/archive/segment_text.h"

namespace quire {
namespace {

// Larger documents are decoded twice: to know whether they are whole, and to
// write them.
constexpr uint64_t kHeldSizeBytesMax = uint64_t{16} << 20;

constexpr absl::string_view kSegmentPrefix = "segment-";
constexpr absl::string_view kSymbolsPrefix = "symbols-";

// Names of the files of an archive in a directory, sorted.
absl::StatusOr<std::vector<std::string>> ListArchiveFiles(
    const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (auto entry = std::filesystem::directory_iterator(path, error);
       !error && entry != std::filesystem::directory_iterator();
       entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (IsArchiveFileName(name)) {
      names.push_back(std::move(name));
    }
  }
  if (error) {
    return ErrnoStatus(error.value(), path, "list");
  }
  std::ranges::sort(names);
  return names;
}

// Makes a manifest from the segments themselves.
class ManifestRecovery {
 public:
  using OnDamage = std::function<void(const absl::Status&)>;

  // `on_left_out` is called for each file of a segment that is not used.
  ManifestRecovery(ArchiveDirectory& directory, OnDamage on_left_out)
      : directory_(directory), on_left_out_(std::move(on_left_out)) {}

  // Sets directory.manifest. Errors: as SalvageArchive().
  absl::Status Run() {
    QUIRE_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                           ListArchiveFiles(directory_.path));
    std::vector<Found> segments;
    for (const std::string& name : names) {
      if (IsSegmentFileName(name)) {
        AddSegment(name, segments);
      }
    }
    if (segments.empty()) {
      return absl::NotFoundError(
          absl::StrCat(directory_.path, ": holds no segment that can be read"));
    }
    const auto with_header = std::ranges::find_if(
        segments, [](const Found& found) { return found.header.has_value(); });
    if (with_header == segments.end()) {
      return absl::DataLossError(
          absl::StrCat(directory_.path,
                       ": MANIFEST and the headers of all segments are "
                       "damaged: the codec is unknown"));
    }
    QUIRE_RETURN_IF_ERROR(
        InFile(directory_.path, SetCodec(*with_header->header)));
    SetTables(*with_header->header, names);
    for (const Found& found : segments) {
      SegmentHeader header = *with_header->header;
      header.number = found.number;
      if (found.header.has_value() && *found.header != header) {
        on_left_out_(absl::DataLossError(
            absl::StrCat(found.file.path, ": belongs to another archive")));
        continue;
      }
      auto described = SegmentReader::Describe(found.file, header);
      if (!described.ok()) {
        on_left_out_(absl::DataLossError(
            absl::StrCat(described.status().message(),
                         "; without MANIFEST its documents cannot be found")));
        continue;
      }
      directory_.manifest.segments.push_back(*std::move(described));
    }
    return absl::OkStatus();
  }

 private:
  struct Found {
    uint32_t number = 0;
    ReadableFile file;
    // Unset if it is damaged.
    std::optional<SegmentHeader> header;
  };

  void AddSegment(const std::string& name, std::vector<Found>& segments) {
    Found found;
    auto file = OpenReadableFile(directory_.fd.get(), name,
                                 absl::StrCat(directory_.path, "/", name));
    if (!file.ok() ||
        !absl::SimpleAtoi(absl::string_view(name).substr(kSegmentPrefix.size()),
                          &found.number) ||
        found.number > kSegmentNumberMax) {
      on_left_out_(file.ok()
                       ? InFile(file->path, Damaged("no segment's number"))
                       : file.status());
      return;
    }
    found.file = *std::move(file);
    std::vector<uint8_t> bytes(kSegmentHeaderSizeBytes);
    if (ReadExactly(found.file.fd.get(), 0, bytes, found.file.path).ok()) {
      const auto header = ParseSegmentHeader(bytes);
      if (header.ok() && header->number == found.number) {
        found.header = *header;
      }
    }
    segments.push_back(std::move(found));
  }

  absl::Status SetCodec(const SegmentHeader& header) {
    Manifest& manifest = directory_.manifest;
    const CodecInfo* const info =
        FindCodec(static_cast<CodecId>(header.codec_id));
    if (info == nullptr) {
      return absl::FailedPreconditionError(
          absl::StrCat("codec ", header.codec_id,
                       " is not known to this program: use a newer one"));
    }
    if (!IsBlockSize(header.block_size_bytes) ||
        (header.partition_size_bytes != 0 &&
         !IsPartitionSize(header.partition_size_bytes))) {
      return Damaged("block or partition size of a segment is impossible");
    }
    // Decoding does not depend on the level.
    manifest.codec = DefaultCodecSpec(*info);
    manifest.codec.partition_size_bytes = header.partition_size_bytes;
    manifest.block_size_bytes = header.block_size_bytes;
    manifest.block_size_bytes_max = kBlockSizeBytesMax;
    manifest.slices_per_mib_max = kSlicesPerMibMax;
    manifest.has_recipes = true;
    return absl::OkStatus();
  }

  // Sets dictionary and symbol table. Errors are found when they are read.
  void SetTables(const SegmentHeader& header,
                 const std::vector<std::string>& names) {
    Manifest& manifest = directory_.manifest;
    if (header.dictionary_hash != 0) {
      manifest.dictionary = {.hash = header.dictionary_hash};
      const std::string name = DictionaryFileName(header.dictionary_hash);
      const auto file = OpenReadableFile(
          directory_.fd.get(), name, absl::StrCat(directory_.path, "/", name));
      std::vector<uint8_t> bytes(kDictionaryHeaderSizeBytes);
      if (file.ok() && ReadExactly(file->fd.get(), 0, bytes, file->path).ok()) {
        if (const auto parsed = ParseDictionaryHeader(bytes); parsed.ok()) {
          manifest.dictionary->size_bytes = parsed->size_bytes;
        }
        manifest.dictionary->file_size_bytes = file->size_bytes();
      }
    }
    for (const std::string& name : names) {
      uint64_t hash = 0;
      const auto file = OpenReadableFile(
          directory_.fd.get(), name, absl::StrCat(directory_.path, "/", name));
      if (absl::StartsWith(name, kSymbolsPrefix) && file.ok() &&
          absl::SimpleHexAtoi(
              absl::string_view(name).substr(kSymbolsPrefix.size()), &hash) &&
          file->size_bytes() >=
              kSymbolTableOverheadBytes + kSymbolTableSizeBytesMin &&
          file->size_bytes() <=
              kSymbolTableOverheadBytes + kSymbolTableSizeBytesMax) {
        manifest.symbol_table = {
            .hash = hash,
            .size_bytes = static_cast<uint32_t>(file->size_bytes() -
                                                kSymbolTableOverheadBytes)};
      }
    }
  }

  ArchiveDirectory& directory_;
  const OnDamage on_left_out_;
};

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
    return output_.Finish();
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
    if (!segment->fields().columns().empty()) {
      ++report_.unsaved_fields_count;
      Damage(absl::DataLossError(absl::StrCat(
          segment->file(), ": the fields of its documents (",
          absl::StrJoin(segment->fields().columns(), ", ",
                        [](std::string* out, const FieldColumn& field) {
                          out->append(field.name);
                        }),
          ") are not saved; while the archive opens, quired build of it keeps "
          "them")));
    }
    SegmentText text(*segment, codec_.get(),
                     directory_.manifest.block_size_bytes_max);
    for (uint64_t i = 0; i < segment->documents().count(); ++i) {
      QUIRE_RETURN_IF_ERROR(SaveDocument(segment->documents(), i, text));
    }
    return absl::OkStatus();
  }

  absl::Status SaveDocument(const DocumentIndex& documents, uint64_t ordinal,
                            SegmentText& text) {
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
    const bool is_held = local.size_bytes <= kHeldSizeBytesMax;
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
    QUIRE_ASSIGN_OR_RETURN(const std::string name,
                           output_.Begin(lost.document, lost.has_id));
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
