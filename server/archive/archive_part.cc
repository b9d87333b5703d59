// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/archive_part.h"

#include "absl/strings/str_cat.h"

#include "server/archive/format/archive_format.h"
#include "server/archive/segment_reader.h"

namespace quire {

static_assert(kSegmentBlockCountMax < kFirstPartIndex);

std::optional<uint64_t> PartOffsetOf(uint64_t block_index) {
  return block_index < kFirstPartIndex
             ? std::nullopt
             : std::optional(block_index - kFirstPartIndex);
}

std::string BlockOrPartName(uint64_t block_index) {
  const std::optional<uint64_t> offset = PartOffsetOf(block_index);
  return offset.has_value() ? absl::StrCat("the part at byte ", *offset,
                                           " of the container data")
                            : absl::StrCat("block ", block_index);
}

ArchivePartLoader BlockingPartLoader(const Archive& archive) {
  return
      [&archive](
          const ArchivePart& part) -> absl::StatusOr<std::optional<PartBytes>> {
        return archive.ReaderOf(part.segment_index).ReadPart(part.part);
      };
}

PartLoader SegmentPartLoader(const Archive& archive, uint32_t segment_index,
                             const ArchivePartLoader& load) {
  return [&archive, segment_index, &load](const ContainerPart& part) {
    return load({.segment_index = segment_index,
                 .block_index = kFirstPartIndex + part.offset,
                 .extent = archive.ReaderOf(segment_index).PartExtent(part),
                 .part = part});
  };
}

}  // namespace quire
