// SPDX-License-Identifier: GPL-3.0-or-later
//
// Which files are tars, zips or WARCs: by their contents, not by their names.
#ifndef QUIRE_SERVER_INGEST_SOURCES_CONTAINER_DETECTION_H_
#define QUIRE_SERVER_INGEST_SOURCES_CONTAINER_DETECTION_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "server/ingest/sources/byte_stream.h"
#include "server/ingest/sources/source.h"

namespace quire {

struct DetectedFile {
  // Null if the file is none of the three.
  std::unique_ptr<Source> container;
  bool is_compressed = false;
};

// A tar of nothing but zeros is empty, but so may be any other file.
enum class EmptyTar { kIsATar, kIsAFile };

// Errors: DataLoss     begins like a compressed file or a tar, but is damaged
//                      from the start.
//         Unavailable  the file cannot be read.
absl::StatusOr<DetectedFile> DetectContainer(
    const std::shared_ptr<const InputFile>& file, const SourceOptions& options,
    EmptyTar empty_tar);

// False only if DetectContainer() would find an uncompressed file that is none
// of the three; takes one short read. Errors: Unavailable.
absl::StatusOr<bool> MayBeContainer(const InputFile& file);

// Whether the file's name says that it is a zip.
bool IsNamedZip(absl::string_view path);

// What is wrong where the name of the file at `path` says something else than
// `detected`: "is named like a WARC, and its contents are none"; empty where
// nothing is.
std::string Misnaming(absl::string_view path, const DetectedFile& detected);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_CONTAINER_DETECTION_H_
