// SPDX-License-Identifier: GPL-3.0-or-later
//
// What an opened segment holds of its container: the heads of its sub-sections.
#ifndef QUIRE_SERVER_ARCHIVE_SEGMENT_CONTAINER_H_
#define QUIRE_SERVER_ARCHIVE_SEGMENT_CONTAINER_H_

#include <cstdint>

#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "server/archive/captures/segment_captures.h"
#include "server/archive/deposits/deposit_directory.h"
#include "server/archive/fields/field_directory.h"

namespace quire {

// Without contents for sub-sections that the container does not have.
struct SegmentContainer {
  SegmentFields fields;
  SegmentCaptures captures;
  SegmentDeposits deposits;
  // There are sub-sections that this program does not know.
  bool has_unknown_parts = false;

  // Parses the section "container directory", untrusted, of a segment of
  // `document_count` documents with `text_size_bytes` of text, and a container
  // of `data_size_bytes`. Errors: DataLoss; FailedPrecondition  a newer program
  // is needed.
  static absl::StatusOr<SegmentContainer> Parse(ByteView directory,
                                                uint64_t document_count,
                                                uint64_t text_size_bytes,
                                                uint64_t data_size_bytes);

  uint64_t MemoryBytes() const {
    return fields.MemoryBytes() + deposits.MemoryBytes();
  }

  // Upper bound on MemoryBytes(), and on what an archive adds to it, for a
  // section of this size.
  static uint64_t EstimateBytes(uint64_t section_size_bytes) {
    return SegmentFields::EstimateBytes(section_size_bytes);
  }
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_SEGMENT_CONTAINER_H_
