// SPDX-License-Identifier: GPL-3.0-or-later
//
// An inner node of the index of captures (FORMAT.md, "Captures").
#ifndef QUIRE_SERVER_ARCHIVE_CAPTURES_CAPTURE_NODE_H_
#define QUIRE_SERVER_ARCHIVE_CAPTURES_CAPTURE_NODE_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "server/archive/captures/capture_keys.h"
#include "server/archive/captures/capture_leaf.h"
#include "server/archive/container/container_part.h"

namespace quire {

// Children of a node.
inline constexpr uint32_t kCaptureNodeCountMax = 4096;

// A child of a node, and where its captures begin.
struct CaptureChild {
  // At most that of its first capture, and above those of the children before.
  // The time and the ordinal are those of its first capture, and the key is
  // that of it or a shorter one.
  SegmentCapturePlace place = {};
  uint64_t capture_count = 0;
  ContainerPart part = {};
};

// Immutable.
class CaptureNode {
 public:
  // `bytes` are untrusted, and not kept. Errors: DataLoss.
  static absl::StatusOr<CaptureNode> Parse(ByteView bytes,
                                           uint64_t data_size_bytes);

  uint32_t count() const { return keys_.count(); }

  // Valid as long as this. REQUIRES: index < count().
  CaptureChild operator[](uint32_t index) const {
    return {.place = Place(index),
            .capture_count = capture_counts_[index],
            .part = parts_[index]};
  }

  // Index of the child with the first capture that is not before `place`, or of
  // the child before, which ends where that begins.
  uint32_t ChildOf(const SegmentCapturePlace& place) const;

  uint64_t MemoryBytes() const;

 private:
  CaptureNode() = default;

  SegmentCapturePlace Place(uint32_t index) const {
    return {.key = keys_[index],
            .time_ms = times_ms_[index],
            .ordinal = ordinals_[index]};
  }

  CaptureKeys keys_;
  std::vector<int64_t> times_ms_;
  std::vector<uint64_t> ordinals_;
  std::vector<uint64_t> capture_counts_;
  std::vector<ContainerPart> parts_;
};

// REQUIRES: 1 to kCaptureNodeCountMax children in their order, whose keys have
// at most kCaptureKeysSizeBytesMax unless there is one.
std::string EncodeCaptureNode(std::span<const CaptureChild> children);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_CAPTURES_CAPTURE_NODE_H_
