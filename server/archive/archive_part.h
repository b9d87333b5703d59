// SPDX-License-Identifier: GPL-3.0-or-later
//
// Parts of the containers of an archive's segments (FORMAT.md, "Container").
#ifndef QUIRE_SERVER_ARCHIVE_ARCHIVE_PART_H_
#define QUIRE_SERVER_ARCHIVE_ARCHIVE_PART_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

#include "codecs/base/positions.h"
#include "server/archive/archive.h"
#include "server/archive/container/container_part.h"

namespace quire {

// Index of the part at offset 0 of a container's data, above the indexes of all
// blocks; that of another part is higher by its offset.
inline constexpr uint64_t kFirstPartIndex = uint64_t{1} << 62;

// Returns the offset in the container's data of the part that an index names;
// unset if it names a block.
std::optional<uint64_t> PartOffsetOf(uint64_t block_index);

// Returns "block N" or "the part at byte N of the container data", for
// messages.
std::string BlockOrPartName(uint64_t block_index);

struct ArchivePart {
  uint32_t segment_index = 0;
  // From kFirstPartIndex. Distinct for each part of the segment: with
  // Archive::OpenedSegmentId() it names the part in caches of blocks.
  uint64_t block_index = 0;
  // The stored bytes. Valid as long as the archive.
  Extent extent;
  // For DecodePart(), which gets the bytes of the extent.
  ContainerPart part;
};

// As PartLoader, for the parts of all segments.
using ArchivePartLoader =
    std::function<absl::StatusOr<std::optional<PartBytes>>(const ArchivePart&)>;

// Loads with a blocking pread: for offline use. `archive` must outlive it.
ArchivePartLoader BlockingPartLoader(const Archive& archive);

// Loads parts of one segment with `load`. Both arguments must outlive it.
PartLoader SegmentPartLoader(const Archive& archive, uint32_t segment_index,
                             const ArchivePartLoader& load);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_ARCHIVE_PART_H_
