// SPDX-License-Identifier: GPL-3.0-or-later
//
// Tars and zips, by libarchive.
#ifndef QUIRE_SERVER_INGEST_SOURCES_CONTAINER_SOURCE_H_
#define QUIRE_SERVER_INGEST_SOURCES_CONTAINER_SOURCE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"

#include "codecs/base/bytes.h"
#include "server/ingest/sources/libarchive_input.h"
#include "server/ingest/sources/source.h"
#include "server/ingest/sources/streams/byte_stream.h"

namespace quire {

// Source of a container's text, opened once per pass.
struct ContainerInput {
  std::string name;
  // Opens the container's decompressed bytes.
  OpenStream open;
  // The file itself if it is not compressed, otherwise null. With it zips are
  // read by their directory, and unneeded parts are skipped.
  std::shared_ptr<const InputFile> file;
  // Size on disk, compressed or not.
  uint64_t stored_size_bytes = 0;
  // Directory for spooled targets of hard links if `file` is null, and their
  // maximum size.
  std::string spool_directory = {};
  uint64_t size_bytes_max = UINT64_MAX;
  // SourceOptions::window_size_bytes_max.
  uint64_t window_size_bytes_max = kWindowSizeBytesDefault;
  // Why a zip that is not compressed is read without its list (then `file` is
  // null): an error after its last entry.
  absl::Status damage = absl::OkStatus();
};

// True if `block` is a tar header: its checksum is right.
// REQUIRES: block.size() == kTarBlockSizeBytes.
bool IsTarHeader(ByteView block);

// Regular files of a tar, in its order, with their names byte for byte. Holes
// of sparse files are read as zeros. A hard link becomes a separate document
// with the contents that its target had at that point of the tar. Links to
// missing targets are counted and skipped. A compressed tar with hard links is
// decompressed twice more, once for all passes, and the contents of their
// targets are spooled (hard_links.h). A tar that ends after an entry without a
// block of zeros is noted (EntryNote::kTolerated). Several tars in one file are
// read one after the other.
std::unique_ptr<Source> MakeTarSource(ContainerInput input);

// Regular files of a zip, in its order, with their names byte for byte; names
// in the code page of PCs are converted to UTF-8 and noted
// (EntryNote::kTolerated). After an entry that cannot be read, reading
// continues with the next one, unless the zip is compressed. Text that is in no
// entry of the list is an error after the last one. With `skip_damage` a zip
// whose list cannot be read is read by the headers of its entries.
std::unique_ptr<Source> MakeZipSource(ContainerInput input,
                                      bool skip_damage = false);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_CONTAINER_SOURCE_H_
