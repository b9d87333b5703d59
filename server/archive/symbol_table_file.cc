// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/symbol_table_file.h"

#include "absl/strings/str_cat.h"

#include "codecs/base/checksum.h"
#include "codecs/base/status_macros.h"
#include "codecs/fsst/symbol_table.h"
#include "server/archive/archive_format.h"
#include "server/archive/file_io.h"

namespace quire {
namespace {

absl::StatusOr<std::string> ReadTable(int fd, const std::string& file,
                                      const ManifestSymbolTable& expected) {
  QUIRE_ASSIGN_OR_RETURN(const uint64_t file_size_bytes,
                         FileSizeBytes(fd, file));
  if (file_size_bytes != kSymbolTableOverheadBytes + expected.size_bytes) {
    return absl::DataLossError(
        absl::StrCat(file, ": is ", file_size_bytes, " bytes long, expected ",
                     kSymbolTableOverheadBytes + expected.size_bytes,
                     "; restore the file from a copy"));
  }
  std::string bytes(file_size_bytes, '\0');
  QUIRE_RETURN_IF_ERROR(ReadExactly(fd, 0, AsMutableBytes(bytes), file));
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

}  // namespace

absl::StatusOr<ManifestSymbolTable> WriteSymbolTableFile(
    int folder_fd, const std::string& folder, ByteView serialised) {
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
      FileWriter::Create(folder_fd, name, absl::StrCat(folder, "/", name)));
  QUIRE_RETURN_IF_ERROR(
      writer.Append(AsBytes(EncodeSymbolTableFile(serialised))));
  QUIRE_RETURN_IF_ERROR(writer.Finish());
  return entry;
}

absl::StatusOr<std::string> ReadSymbolTableFile(
    int folder_fd, const std::string& folder,
    const ManifestSymbolTable& expected) {
  const std::string name = SymbolTableFileName(expected.hash);
  const std::string file = absl::StrCat(folder, "/", name);
  QUIRE_ASSIGN_OR_RETURN(const UniqueFd fd,
                         OpenPartForReading(folder_fd, name, file));
  return ReadTable(fd.get(), file, expected);
}

}  // namespace quire
