// SPDX-License-Identifier: GPL-3.0-or-later
//
// What an opened segment holds of its index of captures (FORMAT.md,
// "Captures"): the root of a tree of parts.
#ifndef QUIRE_SERVER_ARCHIVE_CAPTURES_SEGMENT_CAPTURES_H_
#define QUIRE_SERVER_ARCHIVE_CAPTURES_SEGMENT_CAPTURES_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "server/archive/container/container_part.h"

namespace quire {

// Nodes on the way to a leaf; more than any number of documents needs.
inline constexpr uint32_t kCaptureLevelsMax = 32;

struct SegmentCaptures {
  // 0 in a segment without an index of captures.
  uint64_t capture_count = 0;
  // Levels of nodes above the leaves; 0: the root is a leaf.
  uint32_t level_count = 0;
  ContainerPart root = {};
  // Of the segment.
  uint64_t document_count = 0;
  uint64_t data_size_bytes = 0;

  // `head` is that of the container's sub-section, untrusted.
  // Errors: DataLoss.
  static absl::StatusOr<SegmentCaptures> Parse(ByteView head,
                                               uint64_t document_count,
                                               uint64_t data_size_bytes);
  std::string Encode() const;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_CAPTURES_SEGMENT_CAPTURES_H_
