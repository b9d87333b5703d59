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

// Size of the headers that begin a volume of a tar: a label, and the extended
// header of the entry that is continued.
constexpr size_t kVolumeStartSizeBytes = 4 * kTarBlockSizeBytes;

// True if the tar that begins with `block`, followed by `text`, is a volume
// after the first, which continues an entry of the one before.
absl::StatusOr<bool> ContinuesVolume(ByteStream& text, ByteView block) {
  constexpr size_t kTypeOffset = 156;
  if (absl::string_view("MVg").find(static_cast<char>(block[kTypeOffset])) ==
      absl::string_view::npos) {
    return false;
  }
  std::vector<uint8_t> whole(kVolumeStartSizeBytes);
  std::ranges::copy(block, whole.begin());
  QUIRE_ASSIGN_OR_RETURN(
      const size_t more,
      ReadFully(text, MutableByteView(whole).subspan(block.size())));
  ByteView start = ByteView(whole).first(block.size() + more);
  while (start.size() >= kTarBlockSizeBytes &&
         IsTarHeader(start.first(kTarBlockSizeBytes))) {
    const uint8_t type = start[kTypeOffset];
    start = start.subspan(kTarBlockSizeBytes);
    if (type == 'M') {
      return true;
    }
    if (type == 'g') {
      return absl::StrContains(AsText(start), "GNU.volume.filename=");
    }
    // The label of the volume.
    if (type != 'V') {
      return false;
    }
  }
  return false;
}

bool IsZeros(ByteView bytes) {
  return std::ranges::all_of(bytes, [](uint8_t byte) { return byte == 0; });
}

constexpr std::array<absl::string_view, 8> kCompressionSuffixes = {
    ".gz", ".bz2", ".xz", ".zst", ".lz4", ".lz", ".lzma", ".Z"};
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

// True if a file with this name that holds zeros only is a tar without entries.
bool IsNamedTar(absl::string_view path) {
  const ContainerKind* const kind = ClaimedKind(path);
  return kind != nullptr && kind->kind == "tar";
}

std::optional<RecordFormat> RecordFormatOf(absl::string_view start) {
  return IsWarcStart(start) ? std::optional(RecordFormat::kWarc)
         : absl::StartsWith(start, kArcMagic)
             ? std::optional(RecordFormat::kArc)
             : std::nullopt;
}

// Reads `start` up to the end of the text or an error, which is returned;
// resizes it to what was read.
absl::Status ReadStart(ByteStream& text, std::vector<uint8_t>& start) {
  size_t size = 0;
  absl::Status status;
  while (size < start.size()) {
    const absl::StatusOr<size_t> got =
        text.Read(MutableByteView(start).subspan(size));
    status = got.status();
    if (!got.ok() || *got == 0) {
      break;
    }
    size += *got;
  }
  start.resize(size);
  return status;
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

// Returns null for what is not a tar. `start` is the first block of the text,
// or all of it, and `text` what follows. Zeros are a tar if it `may_be_empty`.
absl::StatusOr<std::unique_ptr<Source>> DetectTar(ContainerInput container,
                                                  ByteStream& text,
                                                  ByteView start,
                                                  bool may_be_empty) {
  const bool is_block = start.size() == kTarBlockSizeBytes;
  if (is_block && IsTarHeader(start)) {
    QUIRE_ASSIGN_OR_RETURN(const bool continues, ContinuesVolume(text, start));
    if (continues) {
      return absl::DataLossError(absl::StrCat(
          container.name, ": is a later volume of a tar of several, whose ",
          "first entry continues one of the volume before; extract all ",
          "volumes in order, by tar --extract --multi-volume, and give the ",
          "directory"));
    }
    return MakeTarSource(std::move(container));
  }
  if (is_block && may_be_empty && IsZeros(start)) {
    return MakeTarSource(std::move(container));
  }
  if (ClaimsToBeTar(AsText(start))) {
    return absl::DataLossError(absl::StrCat(
        container.name, ": begins like a tar, but the checksum in its first ",
        "header is not that of the header: it is damaged"));
  }
  return nullptr;
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
          file->name(), size_bytes_max, options.window_size_bytes_max));
  DetectedFile detected;
  detected.is_compressed = whole.is_compressed();
  std::vector<uint8_t> start(kTarBlockSizeBytes);
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<ByteStream> text, whole.Open());
  OpenStream open = [whole] { return whole.Open(); };
  const absl::Status read = ReadStart(*text, start);
  const absl::string_view start_text = AsText(start);
  const WarcDamage damage =
      options.skip_damage ? WarcDamage::kSkip : WarcDamage::kStop;
  const bool skips_damage = absl::IsDataLoss(read) && options.skip_damage;
  std::optional<RecordFormat> format =
      RecordFormatOf(read.ok() || skips_damage ? start_text : "");
  const bool is_zip = IsZipStart(start_text);
  if (skips_damage && !format.has_value() && !is_zip) {
    QUIRE_ASSIGN_OR_RETURN(format, RecordFormatAfterDamage(whole));
    if (!format.has_value() && options.split.has_value() &&
        !start_text.empty() && !absl::StrContains(start_text, '\0')) {
      // The lines before the damage are kept.
      return detected;
    }
  }
  if (format.has_value()) {
    detected.container = MakeWarcSource(file, std::move(open), *format, damage);
    return detected;
  }
  if (!(skips_damage && is_zip)) {
    QUIRE_RETURN_IF_ERROR(read);
  }
  ContainerInput container;
  container.name = file->name();
  container.open = std::move(open);
  container.file = detected.is_compressed ? nullptr : file;
  container.stored_size_bytes = stored_size_bytes;
  container.spool_directory = options.spool_directory;
  container.size_bytes_max = size_bytes_max;
  container.window_size_bytes_max = options.window_size_bytes_max;
  if (is_zip) {
    // Other zips in directories stay as they are, so their entries do not
    // matter.
    if (container.file != nullptr &&
        (found_in != FoundIn::kDirectory || IsNamedZip(file->name()))) {
      QUIRE_ASSIGN_OR_RETURN(detected.container,
                             MakeWaczSource(container, damage));
    }
    if (detected.container == nullptr) {
      detected.container =
          MakeZipSource(std::move(container), options.skip_damage);
    }
    return detected;
  }
  const bool may_be_empty =
      found_in == FoundIn::kStandardInput || IsNamedTar(file->name());
  QUIRE_ASSIGN_OR_RETURN(
      detected.container,
      DetectTar(std::move(container), *text, start, may_be_empty));
  return detected;
}

bool MayBeCompressed(absl::string_view start) {
  constexpr std::array<absl::string_view, 9> kStarts = {"\x1F\x8B",
                                                        "\x1F\x9D",
                                                        "BZh",
                                                        "\xFD"
                                                        "7zXZ",
                                                        "\x28\xB5\x2F\xFD",
                                                        "\x04\x22\x4D\x18",
                                                        "\x02\x21\x4C\x18",
                                                        "LZIP",
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
         (size == start.size() &&
          (IsTarHeader(start) || (IsZeros(start) && IsNamedTar(file.name()))));
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
