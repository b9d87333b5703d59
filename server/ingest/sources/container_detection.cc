// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/container_detection.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/bytes.h"
#include "codecs/base/status_macros.h"
#include "server/ingest/sources/compressed_text.h"
#include "server/ingest/sources/container_source.h"
#include "server/ingest/sources/crawl/arc_header.h"
#include "server/ingest/sources/crawl/wacz_source.h"
#include "server/ingest/sources/crawl/warc_source.h"
#include "server/ingest/sources/input_limits.h"
#include "server/ingest/sources/libarchive_input.h"

namespace quire {
namespace {

bool IsZipStart(absl::string_view text) {
  return absl::StartsWith(text, "PK\x03\x04") ||
         absl::StartsWith(text, "PK\x05\x06");
}

bool ClaimsToBeTar(absl::string_view text) {
  return text.size() > 262 && text.substr(257, 5) == "ustar";
}

constexpr std::array<absl::string_view, 4> kCompressionSuffixes = {
    ".gz", ".bz2", ".xz", ".zst"};
constexpr std::array<absl::string_view, 4> kCompressedTarSuffixes = {
    ".tgz", ".tbz2", ".txz", ".tzst"};

// Name of a kind of container in messages, by Source::kind().
struct ContainerKind {
  absl::string_view kind;
  absl::string_view suffix;
  absl::string_view phrase;
};

constexpr std::array<ContainerKind, 5> kContainerKinds = {
    ContainerKind{"warc", ".warc", "a WARC"},
    ContainerKind{"arc", ".arc", "an ARC"},
    ContainerKind{"wacz", ".wacz", "a WACZ"},
    ContainerKind{"tar", ".tar", "a tar"},
    ContainerKind{"zip", ".zip", "a zip"}};

template <typename Suffixes>
bool EndsWithAny(absl::string_view path, const Suffixes& suffixes) {
  return std::any_of(suffixes.begin(), suffixes.end(),
                     [path](absl::string_view suffix) {
                       return absl::EndsWithIgnoreCase(path, suffix);
                     });
}

bool ClaimsCompression(absl::string_view path) {
  return EndsWithAny(path, kCompressionSuffixes) ||
         EndsWithAny(path, kCompressedTarSuffixes);
}

const ContainerKind* FindKind(absl::string_view kind) {
  const auto* const found = std::find_if(
      kContainerKinds.begin(), kContainerKinds.end(),
      [kind](const ContainerKind& entry) { return entry.kind == kind; });
  return found != kContainerKinds.end() ? found : nullptr;
}

// Null for other names.
const ContainerKind* ClaimedKind(absl::string_view path) {
  if (EndsWithAny(path, kCompressedTarSuffixes)) {
    return FindKind("tar");
  }
  if (EndsWithAny(path, kCompressionSuffixes)) {
    path = path.substr(0, path.rfind('.'));
  }
  for (const ContainerKind& kind : kContainerKinds) {
    if (absl::EndsWithIgnoreCase(path, kind.suffix)) {
      return &kind;
    }
  }
  return nullptr;
}

std::optional<RecordFormat> RecordFormatOf(absl::string_view start) {
  return IsWarcStart(start) ? std::optional(RecordFormat::kWarc)
         : absl::StartsWith(start, kArcMagic)
             ? std::optional(RecordFormat::kArc)
             : std::nullopt;
}

// The same for a file whose first member is damaged: of the first of the others
// that begins a record.
absl::StatusOr<std::optional<RecordFormat>> RecordFormatAfterDamage(
    const CompressedText& whole) {
  for (const RecordFormat format : {RecordFormat::kWarc, RecordFormat::kArc}) {
    QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<ByteStream> text,
                           whole.Open());
    // Starts the first member.
    uint8_t first = 0;
    text->Read(MutableByteView(&first, 1)).status().IgnoreError();
    QUIRE_ASSIGN_OR_RETURN(const auto skipped,
                           text->SkipPart(0, RecordStart(format)));
    if (skipped.has_value() && !skipped->is_last) {
      return format;
    }
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<DetectedFile> DetectContainer(
    const std::shared_ptr<const InputFile>& file, const SourceOptions& options,
    FoundIn found_in) {
  QUIRE_ASSIGN_OR_RETURN(const uint64_t stored_size_bytes, file->SizeBytes());
  const uint64_t size_bytes_max =
      InputSizeBytesMax(options.input_size_bytes_max, stored_size_bytes);
  QUIRE_ASSIGN_OR_RETURN(
      const CompressedText whole,
      CompressedText::Detect(
          [file]() -> absl::StatusOr<std::unique_ptr<ByteStream>> {
            return std::make_unique<FileStream>(file);
          },
          file->name(), size_bytes_max));
  DetectedFile detected;
  detected.is_compressed = whole.is_compressed();
  std::vector<uint8_t> start(kTarBlockSizeBytes);
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<ByteStream> text, whole.Open());
  OpenStream open = [whole] { return whole.Open(); };
  const absl::StatusOr<size_t> start_size = ReadFully(*text, start);
  start.resize(start_size.value_or(0));
  const absl::string_view start_text = AsText(start);
  const WarcDamage damage =
      options.skip_damage ? WarcDamage::kSkip : WarcDamage::kStop;
  std::optional<RecordFormat> format = RecordFormatOf(start_text);
  if (absl::IsDataLoss(start_size.status()) && options.skip_damage) {
    QUIRE_ASSIGN_OR_RETURN(format, RecordFormatAfterDamage(whole));
  }
  if (format.has_value()) {
    detected.container = MakeWarcSource(file, std::move(open), *format, damage);
    return detected;
  }
  QUIRE_RETURN_IF_ERROR(start_size.status());
  ContainerInput container;
  container.name = file->name();
  container.open = std::move(open);
  container.file = detected.is_compressed ? nullptr : file;
  container.stored_size_bytes = stored_size_bytes;
  container.spool_directory = options.spool_directory;
  container.size_bytes_max = size_bytes_max;
  if (IsZipStart(start_text)) {
    // Other zips in directories stay as they are, so their entries do not
    // matter.
    if (container.file != nullptr &&
        (found_in != FoundIn::kDirectory || IsNamedZip(file->name()))) {
      QUIRE_ASSIGN_OR_RETURN(detected.container,
                             MakeWaczSource(container, damage));
    }
    if (detected.container == nullptr) {
      detected.container = MakeZipSource(std::move(container));
    }
    return detected;
  }
  const bool whole_block = start.size() == kTarBlockSizeBytes;
  const bool zeros = std::all_of(start.begin(), start.end(),
                                 [](uint8_t byte) { return byte == 0; });
  if (whole_block &&
      (IsTarHeader(start) || (found_in == FoundIn::kStandardInput && zeros))) {
    detected.container = MakeTarSource(std::move(container));
    return detected;
  }
  if (ClaimsToBeTar(start_text)) {
    return absl::DataLossError(absl::StrCat(
        file->name(), ": begins like a tar, but the checksum in its first ",
        "header is not that of the header: it is damaged"));
  }
  return detected;
}

// Compares the first bytes with the formats that libarchive and zlib
// decompress. lzma has no magic number: these are the settings that its
// programs write.
bool MayBeCompressed(absl::string_view start) {
  constexpr std::array<absl::string_view, 10> kStarts = {"\x1F\x8B",
                                                         "\x1F\x9D",
                                                         "BZh",
                                                         "\xFD"
                                                         "7zXZ",
                                                         "\x28\xB5\x2F\xFD",
                                                         "\x04\x22\x4D\x18",
                                                         "\x02\x21\x4C\x18",
                                                         "LZIP",
                                                         "\x89LZO",
                                                         "\x5D"};
  return std::any_of(kStarts.begin(), kStarts.end(),
                     [start](absl::string_view magic) {
                       return absl::StartsWith(start, magic);
                     }) ||
         // A skippable frame of zstd.
         (start.size() >= 4 &&
          (static_cast<uint8_t>(start[0]) & 0xF0) == 0x50 &&
          start.substr(1, 3) == "\x2A\x4D\x18");
}

absl::StatusOr<bool> MayBeContainer(const InputFile& file) {
  std::array<uint8_t, kTarBlockSizeBytes> start = {};
  QUIRE_ASSIGN_OR_RETURN(const size_t size, file.ReadAt(0, start));
  const absl::string_view text = AsText(start).substr(0, size);
  return RecordFormatOf(text).has_value() || IsZipStart(text) ||
         MayBeCompressed(text) || ClaimsToBeTar(text) ||
         (size == start.size() && IsTarHeader(start));
}

bool IsNamedZip(absl::string_view path) {
  return absl::EndsWithIgnoreCase(path, ".zip") || IsNamedWacz(path);
}

std::string Misnaming(absl::string_view path, const DetectedFile& detected) {
  const ContainerKind* const claimed = ClaimedKind(path);
  const ContainerKind* const kind = detected.container == nullptr
                                        ? nullptr
                                        : FindKind(detected.container->kind());
  // A WACZ is a zip.
  const bool is_as_claimed =
      claimed == kind || (claimed != nullptr && kind != nullptr &&
                          claimed->kind == "zip" && kind->kind == "wacz");
  if (claimed != nullptr && !is_as_claimed) {
    return absl::StrCat(
        "is named like ", claimed->phrase, ", and its contents are ",
        kind == nullptr ? "not one; it is kept as one document, as it is"
                        : absl::StrCat(kind->phrase, "; it is read as that"));
  }
  if (ClaimsCompression(path) && !detected.is_compressed) {
    return "is named like a compressed file, and its contents are not "
           "compressed";
  }
  return "";
}

}  // namespace quire
