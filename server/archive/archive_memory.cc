// SPDX-License-Identifier: GPL-3.0-or-later
//
// What an archive will hold in RAM, before it is opened.
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

#include "codecs/base/status_macros.h"
#include "server/archive/archive.h"
#include "server/archive/archive_folder.h"
#include "server/archive/segment_reader.h"
#include "server/archive/symbol_table_file.h"

namespace quire {
namespace {

// Working memory of a decoder and the objects around the indexes.
constexpr uint64_t kFixedMemoryBytes = 64 << 10;

}  // namespace

absl::StatusOr<uint64_t> Archive::EstimateMemoryBytes(const std::string& path) {
  QUIRE_ASSIGN_OR_RETURN(const ArchiveFolder folder, OpenArchiveFolder(path));
  uint64_t size_bytes = kFixedMemoryBytes;
  if (folder.manifest.dictionary.has_value()) {
    size_bytes += folder.manifest.dictionary->size_bytes;
  }
  if (folder.manifest.symbol_table.has_value()) {
    size_bytes += kSymbolTableMemoryBytes;
  }
  for (const ManifestSegment& segment : folder.manifest.segments) {
    size_bytes += SegmentReader::EstimateMemoryBytes(segment);
  }
  return size_bytes;
}

}  // namespace quire
