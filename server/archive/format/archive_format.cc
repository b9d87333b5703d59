// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/format/archive_format.h"

#include <algorithm>
#include <bit>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

#include "codecs/base/status_macros.h"
#include "codecs/block_codec.h"

namespace quire {
namespace {

constexpr char kDamaged[] =
    "the file is damaged: restore it from a copy, or build the archive again";

}  // namespace

bool IsBlockSize(uint32_t block_size_bytes) {
  return std::has_single_bit(block_size_bytes) &&
         block_size_bytes >= kBlockSizeBytesMin &&
         block_size_bytes <= kBlockSizeBytesMax;
}

std::string SegmentFileName(uint32_t number) {
  return absl::StrFormat("segment-%08u", number);
}

std::string DictionaryFileName(uint64_t hash) {
  return absl::StrCat(kDictionaryFilePrefix, FormatChecksum(hash));
}

std::string SymbolTableFileName(uint64_t hash) {
  return absl::StrCat(kSymbolTableFilePrefix, FormatChecksum(hash));
}

bool IsSegmentFileName(absl::string_view name) {
  return absl::ConsumePrefix(&name, "segment-") && name.size() == 8 &&
         std::all_of(name.begin(), name.end(), absl::ascii_isdigit);
}

bool IsArchiveFileName(absl::string_view name) {
  if (IsSegmentFileName(name)) {
    return true;
  }
  for (const absl::string_view kind :
       {kDictionaryFilePrefix, kSymbolTableFilePrefix}) {
    if (absl::StartsWith(name, kind)) {
      name.remove_prefix(kind.size());
      return name.size() == 16 &&
             std::all_of(name.begin(), name.end(), absl::ascii_isxdigit);
    }
  }
  return name == kManifestFileName;
}

std::string EncodeDictionaryHeader(const DictionaryHeader& header) {
  FieldWriter writer;
  writer.Bytes(kDictionaryMagic);
  writer.Integer(kFormatVersion);
  writer.Integer(static_cast<uint32_t>(header.method));
  writer.Integer(header.size_bytes);
  writer.Integer(header.stored_size_bytes);
  writer.Integer(header.hash);
  writer.Integer(header.stored_checksum);
  writer.Integer(writer.Checksum());
  return writer.Take();
}

absl::StatusOr<DictionaryHeader> ParseDictionaryHeader(ByteView bytes) {
  QUIRE_RETURN_IF_ERROR(
      CheckMagicAndVersion(bytes, kDictionaryMagic, "dictionary header"));
  FieldReader reader(bytes);
  reader.Skip(kDictionaryMagic.size() + sizeof(uint32_t));
  const uint32_t method = reader.Integer<uint32_t>();
  DictionaryHeader header;
  header.size_bytes = reader.Integer<uint64_t>();
  header.stored_size_bytes = reader.Integer<uint64_t>();
  header.hash = reader.Integer<uint64_t>();
  header.stored_checksum = reader.Integer<uint64_t>();
  const uint64_t expected = reader.Integer<uint64_t>();
  const uint64_t found =
      Checksum64(bytes.first(kDictionaryHeaderSizeBytes - sizeof(uint64_t)));
  if (found != expected) {
    return ChecksumMismatch("dictionary header checksum", found, expected);
  }
  QUIRE_ASSIGN_OR_RETURN(header.method,
                         ParseCompressionMethod(method, "the dictionary"));
  if (header.size_bytes > kDictionaryTextSizeBytesMax ||
      !IsPlausibleExpansion(header.method, header.stored_size_bytes,
                            header.size_bytes)) {
    return Damaged(absl::StrCat("dictionary claims ", header.size_bytes,
                                " bytes out of ", header.stored_size_bytes));
  }
  return header;
}

std::string EncodeSymbolTableFile(ByteView table) {
  FieldWriter writer;
  writer.Bytes(kSymbolTableMagic);
  writer.Integer(kFormatVersion);
  writer.Integer(static_cast<uint32_t>(table.size()));
  writer.Bytes(table);
  writer.Integer(writer.Checksum());
  return writer.Take();
}

absl::StatusOr<ByteView> ParseSymbolTableFile(ByteView file) {
  QUIRE_RETURN_IF_ERROR(
      CheckMagicAndVersion(file, kSymbolTableMagic, "symbol table"));
  if (file.size() < kSymbolTableOverheadBytes) {
    return Damaged(absl::StrCat("only ", file.size(), " bytes long"));
  }
  FieldReader reader(file);
  reader.Skip(kSymbolTableMagic.size() + sizeof(uint32_t));
  const uint32_t size_bytes = reader.Integer<uint32_t>();
  if (size_bytes != file.size() - kSymbolTableOverheadBytes) {
    return Damaged(absl::StrCat("claims a table of ", size_bytes,
                                " bytes in a file of ", file.size()));
  }
  const ByteView content = file.first(file.size() - sizeof(uint64_t));
  reader.Skip(size_bytes);
  const uint64_t expected = reader.Integer<uint64_t>();
  const uint64_t found = Checksum64(content);
  if (found != expected) {
    return ChecksumMismatch("symbol table checksum", found, expected);
  }
  return content.last(size_bytes);
}

absl::StatusOr<CompressionMethod> ParseCompressionMethod(
    uint32_t value, absl::string_view what) {
  if (value > static_cast<uint32_t>(CompressionMethod::kXz)) {
    return absl::FailedPreconditionError(
        absl::StrCat(what, " is compressed by method ", value,
                     ", which this program does not know: use a newer one"));
  }
  return static_cast<CompressionMethod>(value);
}

// True if `size_bytes` can be the decompressed size of `stored_size_bytes`.
bool IsPlausibleExpansion(CompressionMethod method, uint64_t stored_size_bytes,
                          uint64_t size_bytes) {
  if (method == CompressionMethod::kNone) {
    return size_bytes == stored_size_bytes;
  }
  return size_bytes / kExpansionMax <= stored_size_bytes;
}

absl::Status Damaged(absl::string_view what) {
  return absl::DataLossError(absl::StrCat(what, "; ", kDamaged));
}

std::string FormatChecksum(uint64_t checksum) {
  return absl::StrFormat("%016x", checksum);
}

absl::Status NoteDamage(const absl::Status& status,
                        std::vector<absl::Status>& damages) {
  if (!absl::IsDataLoss(status)) {
    return status;
  }
  damages.push_back(status);
  return absl::OkStatus();
}

absl::Status ChecksumMismatch(absl::string_view what, uint64_t found,
                              uint64_t expected) {
  return Damaged(absl::StrCat(what, " is ", FormatChecksum(found),
                              ", expected ", FormatChecksum(expected)));
}

absl::Status CheckMagicAndVersion(ByteView bytes, const Magic& magic,
                                  absl::string_view what) {
  if (bytes.size() < magic.size() + sizeof(uint32_t) ||
      !std::ranges::equal(bytes.first(magic.size()), magic)) {
    return Damaged(absl::StrCat("this is not a Quire ", what));
  }
  const uint32_t version =
      LoadLittleEndian<uint32_t>(bytes.data() + magic.size());
  if (version == 0) {
    return Damaged(absl::StrCat(what, " claims format version 0, expected ",
                                kFormatVersion));
  }
  if (version < kFormatVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat(what, " is of format version ", version,
                     ", which a pre-release wrote: build the archive again"));
  }
  if (version > kFormatVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        what, " is of format version ", version, ", this program reads ",
        kFormatVersion, ": use a newer program, or the file is damaged"));
  }
  return absl::OkStatus();
}

absl::Status InFile(absl::string_view part, const absl::Status& status) {
  if (status.ok()) {
    return status;
  }
  return absl::Status(status.code(),
                      absl::StrCat(part, ": ", status.message()));
}

}  // namespace quire
