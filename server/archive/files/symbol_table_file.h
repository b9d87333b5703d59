// SPDX-License-Identifier: GPL-3.0-or-later
//
// The file of an archive's symbol table (FORMAT.md, "Symbol table").
#ifndef QUIRE_SERVER_ARCHIVE_FILES_SYMBOL_TABLE_FILE_H_
#define QUIRE_SERVER_ARCHIVE_FILES_SYMBOL_TABLE_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "server/archive/files/file_io.h"
#include "server/archive/format/manifest.h"

namespace quire {

// Upper bound on the memory of a symbol table and of a server's decoder.
inline constexpr uint64_t kSymbolTableMemoryBytes = 32 << 10;

// Writes and syncs the file. `serialised` is in the form of
// fsst/symbol_table.h; `directory` is a path for messages.
// Errors: InvalidArgument                not a symbol table.
//         Unavailable, PermissionDenied  error of the file system.
absl::StatusOr<ManifestSymbolTable> WriteSymbolTableFile(
    int directory_fd, const std::string& directory, ByteView serialised);

// Reads and checks the table that the manifest names; returns it serialised.
// Errors: DataLoss, FailedPrecondition, Unavailable.
absl::StatusOr<std::string> ReadSymbolTableFile(
    const ReadableFile& opened, const ManifestSymbolTable& expected);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_FILES_SYMBOL_TABLE_FILE_H_
