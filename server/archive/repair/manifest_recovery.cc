// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/repair/manifest_recovery.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "codecs/base/status_macros.h"
#include "codecs/block_codec.h"
#include "server/archive/files/dictionary_file.h"
#include "server/archive/files/symbol_table_file.h"
#include "server/archive/format/archive_format.h"
#include "server/archive/format/manifest.h"
#include "server/archive/segment_reader.h"

namespace quire {
namespace {

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

}  // namespace

absl::Status ManifestRecovery::Run() {
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

void ManifestRecovery::AddSegment(const std::string& name,
                                  std::vector<Found>& segments) {
  Found found;
  auto file = OpenReadableFile(directory_.fd.get(), name,
                               absl::StrCat(directory_.path, "/", name));
  if (!file.ok() ||
      !absl::SimpleAtoi(absl::string_view(name).substr(kSegmentPrefix.size()),
                        &found.number) ||
      found.number > kSegmentNumberMax) {
    on_left_out_(file.ok() ? InFile(file->path, Damaged("no segment's number"))
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

absl::Status ManifestRecovery::SetCodec(const SegmentHeader& header) {
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

void ManifestRecovery::SetTables(const SegmentHeader& header,
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

}  // namespace quire
