// SPDX-License-Identifier: GPL-3.0-or-later
//
// Detects tars, zips, WACZs, WARCs and ARCs by their contents, not by their
// names.
#ifndef QUIRE_SERVER_INGEST_SOURCES_CONTAINER_DETECTION_H_
#define QUIRE_SERVER_INGEST_SOURCES_CONTAINER_DETECTION_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "server/ingest/sources/source.h"
#include "server/ingest/sources/streams/byte_stream.h"

namespace quire {

struct DetectedFile {
  // Null for any other file.
  std::unique_ptr<Source> container;
  bool is_compressed = false;
};

// Zeros alone are an empty tar on standard input, or if named like a tar. In
// directories, only files with IsNamedZip() are searched for the parts of a
// WACZ.
enum class FoundIn { kStandardInput, kArgument, kDirectory };

// Errors: DataLoss     begins like a compressed file or a tar, but is damaged
//                      from the start.
//         Unavailable  the file cannot be read.
absl::StatusOr<DetectedFile> DetectContainer(
    const std::shared_ptr<const InputFile>& file, const SourceOptions& options,
    FoundIn found_in);

// False only if DetectContainer() would find an uncompressed file that is not a
// container. Takes one short read. Errors: Unavailable.
absl::StatusOr<bool> MayBeContainer(const InputFile& file);

// False only if text that begins with `start` is not compressed in a format
// that is decompressed. May be true of any other text.
bool MayBeCompressed(absl::string_view start);

// True if the file is named like a zip or WACZ.
bool IsNamedZip(absl::string_view path);

// Returns the conflict between the name of the file at `path` and `detected`:
// "is named like a WARC, and its contents are none"; empty if there is none.
std::string Misnaming(absl::string_view path, const DetectedFile& detected);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_CONTAINER_DETECTION_H_
