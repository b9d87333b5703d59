// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/segment_container.h"

#include <vector>

#include "codecs/base/status_macros.h"
#include "server/archive/container/container_directory.h"

namespace quire {

absl::StatusOr<SegmentContainer> SegmentContainer::Parse(
    ByteView directory, uint64_t document_count, uint64_t text_size_bytes,
    uint64_t data_size_bytes) {
  QUIRE_ASSIGN_OR_RETURN(const std::vector<ContainerEntry> entries,
                         ParseContainerDirectory(directory));
  SegmentContainer container;
  for (const ContainerEntry& entry : entries) {
    switch (static_cast<SubsectionId>(entry.id)) {
      case SubsectionId::kFields: {
        QUIRE_ASSIGN_OR_RETURN(
            container.fields,
            SegmentFields::Parse(entry.head, document_count, data_size_bytes));
        break;
      }
      case SubsectionId::kCaptures: {
        QUIRE_ASSIGN_OR_RETURN(
            container.captures,
            SegmentCaptures::Parse(entry.head, document_count,
                                   data_size_bytes));
        break;
      }
      case SubsectionId::kDeposits: {
        QUIRE_ASSIGN_OR_RETURN(
            container.deposits,
            SegmentDeposits::Parse(entry.head, text_size_bytes,
                                   data_size_bytes));
        break;
      }
      default:
        container.has_unknown_parts = true;
    }
  }
  return container;
}

}  // namespace quire
