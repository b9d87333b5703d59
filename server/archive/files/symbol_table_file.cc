// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/files/symbol_table_file.h"

#include "absl/strings/str_cat.h"

#include "codecs/base/checksum.h"
#include "codecs/base/status_macros.h"
#include "codecs/fsst/table/symbol_table.h"
#include "server/archive/format/archive_format.h"

namespace quire {
absl::StatusOr<ManifestSymbolTable> WriteSymbolTableFile(
    int directory_fd, const std::string& directory, ByteView serialised) {
  const auto table = SymbolTable::Parse(serialised);
  if (!table.ok()) {
    return absl::InvalidArgumentError(table.status().message());
  }
  const ManifestSymbolTable entry = {
      .hash = Checksum64(serialised),
      .size_bytes = static_cast<uint32_t>(serialised.size())};
  const std::string name = SymbolTableFileName(entry.hash);
  QUIRE_ASSIGN_OR_RETURN(
      FileWriter writer,
      FileWriter::Create(directory_fd, name,
                         absl::StrCat(directory, "/", name)));
  QUIRE_RETURN_IF_ERROR(
      writer.Append(AsBytes(EncodeSymbolTableFile(serialised))));
  QUIRE_RETURN_IF_ERROR(writer.Finish());
  return entry;
}

absl::StatusOr<std::string> ReadSymbolTableFile(
    const ReadableFile& opened, const ManifestSymbolTable& expected) {
  QUIRE_RETURN_IF_ERROR(
      CheckFileSize(opened, kSymbolTableOverheadBytes + expected.size_bytes));
  const std::string& file = opened.path;
  std::string bytes(opened.size_bytes(), '\0');
  QUIRE_RETURN_IF_ERROR(
      ReadExactly(opened.fd.get(), 0, AsMutableBytes(bytes), file));
  const auto table = ParseSymbolTableFile(AsBytes(bytes));
  QUIRE_RETURN_IF_ERROR(InFile(file, table.status()));
  const uint64_t hash = Checksum64(*table);
  if (hash != expected.hash) {
    return InFile(file, ChecksumMismatch("checksum of the symbol table itself",
                                         hash, expected.hash));
  }
  QUIRE_RETURN_IF_ERROR(InFile(file, SymbolTable::Parse(*table).status()));
  return std::string(AsText(*table));
}

}  // namespace quire
