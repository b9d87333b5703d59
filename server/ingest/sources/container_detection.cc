// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/container_detection.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/bytes.h"
#include "codecs/base/status_macros.h"
#include "server/ingest/sources/container_source.h"
#include "server/ingest/sources/gzip_stream.h"
#include "server/ingest/sources/input_limits.h"
#include "server/ingest/sources/libarchive_input.h"
#include "server/ingest/sources/warc_source.h"

namespace quire {
namespace {

using FilePtr = std::shared_ptr<const InputFile>;

enum class Compression { kNone, kGzip, kOther };

// Parameters of a pass over a file.
struct TextForm {
  Compression compression = Compression::kNone;
  // Upper bound on its decompressed size.
  uint64_t size_bytes_max = 0;
};

absl::StatusOr<std::unique_ptr<ByteStream>> OpenCompressed(
    const FilePtr& file, Compression compression) {
  auto stream = std::make_unique<FileStream>(file);
  if (compression == Compression::kGzip) {
    return GzipStream::Create(std::move(stream), file->name());
  }
  QUIRE_ASSIGN_OR_RETURN(
      std::unique_ptr<DecompressedStream> text,
      DecompressedStream::Create(std::move(stream), file->name()));
  if (text == nullptr) {
    return absl::UnavailableError(absl::StrCat(
        file->name(),
        ": was compressed when it was opened and is not now; do not change ",
        "the input during a build"));
  }
  return text;
}

// Starts a pass over the text of `file`.
absl::StatusOr<std::unique_ptr<ByteStream>> OpenText(const FilePtr& file,
                                                     const TextForm& form) {
  if (form.compression == Compression::kNone) {
    return std::make_unique<FileStream>(file);
  }
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<ByteStream> text,
                         OpenCompressed(file, form.compression));
  return std::make_unique<BoundedStream>(std::move(text), file->name(),
                                         form.size_bytes_max);
}

absl::StatusOr<Compression> DetectCompression(const FilePtr& file) {
  std::array<uint8_t, 3> start = {};
  QUIRE_ASSIGN_OR_RETURN(const size_t size, file->ReadAt(0, start));
  // The magic number includes deflate, gzip's only method: two bytes are too
  // few to call a file damaged if it does not decompress.
  if (size == start.size() && start[0] == 0x1F && start[1] == 0x8B &&
      start[2] == 8) {
    return Compression::kGzip;
  }
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<DecompressedStream> text,
                         DecompressedStream::Create(
                             std::make_unique<FileStream>(file), file->name()));
  return text != nullptr ? Compression::kOther : Compression::kNone;
}

bool IsZipStart(absl::string_view text) {
  return absl::StartsWith(text, "PK\x03\x04") ||
         absl::StartsWith(text, "PK\x05\x06");
}

bool ClaimsToBeTar(absl::string_view text) {
  return text.size() > 262 && text.substr(257, 5) == "ustar";
}

// Compares the first bytes with the formats that libarchive and zlib
// decompress. lzma has no magic number: these are the settings that its
// programs write.
bool MayBeCompressed(absl::string_view text) {
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
                     [text](absl::string_view start) {
                       return absl::StartsWith(text, start);
                     }) ||
         // A skippable frame of zstd.
         (text.size() >= 4 && (static_cast<uint8_t>(text[0]) & 0xF0) == 0x50 &&
          text.substr(1, 3) == "\x2A\x4D\x18");
}

constexpr std::array<absl::string_view, 4> kCompressionSuffixes = {
    ".gz", ".bz2", ".xz", ".zst"};
constexpr std::array<absl::string_view, 4> kCompressedTarSuffixes = {
    ".tgz", ".tbz2", ".txz", ".tzst"};

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

// "warc", "tar", "zip", or empty for other names.
absl::string_view ClaimedKind(absl::string_view path) {
  if (EndsWithAny(path, kCompressedTarSuffixes)) {
    return "tar";
  }
  if (EndsWithAny(path, kCompressionSuffixes)) {
    path = path.substr(0, path.rfind('.'));
  }
  return absl::EndsWithIgnoreCase(path, ".warc")  ? "warc"
         : absl::EndsWithIgnoreCase(path, ".tar") ? "tar"
         : IsNamedZip(path)                       ? "zip"
                                                  : "";
}

}  // namespace

absl::StatusOr<DetectedFile> DetectContainer(
    const std::shared_ptr<const InputFile>& file, const SourceOptions& options,
    EmptyTar empty_tar) {
  QUIRE_ASSIGN_OR_RETURN(const uint64_t stored_size_bytes, file->SizeBytes());
  TextForm form;
  form.size_bytes_max =
      InputSizeBytesMax(options.input_size_bytes_max, stored_size_bytes);
  QUIRE_ASSIGN_OR_RETURN(form.compression, DetectCompression(file));
  DetectedFile detected;
  detected.is_compressed = form.compression != Compression::kNone;
  std::vector<uint8_t> start(kTarBlockSizeBytes);
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<ByteStream> text,
                         OpenText(file, form));
  auto open = [file, form] { return OpenText(file, form); };
  const absl::StatusOr<size_t> start_size = ReadFully(*text, start);
  start.resize(start_size.value_or(0));
  const absl::string_view start_text = AsText(start);
  bool is_warc = absl::StartsWith(start_text, kWarcMagic);
  if (absl::IsDataLoss(start_size.status()) && options.skip_damage) {
    // The damage may be in the first of many members.
    QUIRE_ASSIGN_OR_RETURN(const auto skipped, text->SkipPart(0, kWarcMagic));
    is_warc = skipped.has_value() && !skipped->is_last;
  }
  if (is_warc) {
    detected.container = MakeWarcSource(
        file, std::move(open),
        options.skip_damage ? WarcDamage::kSkip : WarcDamage::kStop);
    return detected;
  }
  QUIRE_RETURN_IF_ERROR(start_size.status());
  ContainerInput container;
  container.name = file->name();
  container.open = std::move(open);
  container.file = detected.is_compressed ? nullptr : file;
  container.stored_size_bytes = stored_size_bytes;
  container.spool_directory = options.spool_directory;
  container.size_bytes_max = form.size_bytes_max;
  if (IsZipStart(start_text)) {
    detected.container = MakeZipSource(std::move(container));
    return detected;
  }
  const bool whole_block = start.size() == kTarBlockSizeBytes;
  const bool zeros = std::all_of(start.begin(), start.end(),
                                 [](uint8_t byte) { return byte == 0; });
  if (whole_block &&
      (IsTarHeader(start) || (empty_tar == EmptyTar::kIsATar && zeros))) {
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

absl::StatusOr<bool> MayBeContainer(const InputFile& file) {
  std::array<uint8_t, kTarBlockSizeBytes> start = {};
  QUIRE_ASSIGN_OR_RETURN(const size_t size, file.ReadAt(0, start));
  const absl::string_view text = AsText(start).substr(0, size);
  return absl::StartsWith(text, kWarcMagic) || IsZipStart(text) ||
         MayBeCompressed(text) || ClaimsToBeTar(text) ||
         (size == start.size() && IsTarHeader(start));
}

bool IsNamedZip(absl::string_view path) {
  return absl::EndsWithIgnoreCase(path, ".zip");
}

std::string Misnaming(absl::string_view path, const DetectedFile& detected) {
  const absl::string_view claimed = ClaimedKind(path);
  const absl::string_view kind =
      detected.container == nullptr ? "file" : detected.container->kind();
  if (!claimed.empty() && claimed != kind) {
    return absl::StrCat("is named like a ",
                        claimed == "warc" ? "WARC" : claimed,
                        ", and its contents are ",
                        detected.container == nullptr
                            ? "not one; it is kept as one document, as it is"
                            : absl::StrCat("a ", kind, "; it is read as that"));
  }
  if (ClaimsCompression(path) && !detected.is_compressed) {
    return "is named like a compressed file, and its contents are not "
           "compressed";
  }
  return "";
}

}  // namespace quire
