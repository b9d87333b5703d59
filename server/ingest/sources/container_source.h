// SPDX-License-Identifier: GPL-3.0-or-later
//
// Tars and zips, by libarchive.
#ifndef QUIRE_SERVER_INGEST_SOURCES_CONTAINER_SOURCE_H_
#define QUIRE_SERVER_INGEST_SOURCES_CONTAINER_SOURCE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "server/ingest/sources/byte_stream.h"
#include "server/ingest/sources/libarchive_input.h"
#include "server/ingest/sources/source.h"

namespace quire {

// Where the text of a container comes from, once per pass.
struct ContainerInput {
  std::string name;
  // The container's bytes, decompressed.
  std::function<absl::StatusOr<std::unique_ptr<ByteStream>>()> open;
  // The file itself where it is not compressed, else null: with it zips are
  // read by their directory, and what is not needed is passed over.
  std::shared_ptr<const InputFile> file;
  // What it takes where it lies, compressed or not.
  uint64_t stored_size_bytes = 0;
  // Where the targets of hard links are spooled if `file` is null, and how many
  // bytes they may hold.
  std::string spool_directory = {};
  uint64_t size_bytes_max = UINT64_MAX;
};

// Whether `block` is the first of a tar: its header's checksum is right.
// REQUIRES: block.size() == kTarBlockSizeBytes.
bool IsTarHeader(ByteView block);

// Regular files of a tar, in its order, with their names byte for byte. Files
// stored sparse are read with their holes as zeros. A hard link becomes a
// document of its own, with the contents that its target had at that place of
// the tar; links to what is not in the tar are counted and left out. A
// compressed tar with hard links is decompressed twice more, once for all
// passes, and the contents of their targets are spooled (hard_links.h).
// A tar must end with its mark (a block of zeros), or it counts as truncated;
// several tars in one file are read one after the other.
std::unique_ptr<Source> MakeTarSource(ContainerInput input);

// Regular files of a zip, in its order.
std::unique_ptr<Source> MakeZipSource(ContainerInput input);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_CONTAINER_SOURCE_H_
