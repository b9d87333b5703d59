// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/archive_part.h"

#include "server/archive/format/archive_format.h"
#include "server/archive/segment_reader.h"

namespace quire {
namespace {

static_assert(kSegmentBlockCountMax < uint64_t{1} << 62);
constexpr uint64_t kFirstPartIndex = uint64_t{1} << 62;

}  // namespace

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
