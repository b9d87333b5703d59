// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/captures/capture_node.h"

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "codecs/base/varint.h"
#include "server/archive/format/archive_format.h"

namespace quire {

absl::StatusOr<CaptureNode> CaptureNode::Parse(ByteView bytes,
                                               uint64_t data_size_bytes) {
  QUIRE_ASSIGN_OR_RETURN(const uint64_t count, TakeVarint(bytes));
  if (count == 0 || count > kCaptureNodeCountMax) {
    return Damaged(absl::StrCat("a node of captures has ", count,
                                " children, expected 1 to ",
                                kCaptureNodeCountMax));
  }
  CaptureNode node;
  QUIRE_ASSIGN_OR_RETURN(
      node.keys_, CaptureKeys::Take(bytes, static_cast<uint32_t>(count)));
  for (uint64_t i = 0; i < count; ++i) {
    QUIRE_ASSIGN_OR_RETURN(const uint64_t time, TakeVarint(bytes));
    node.times_ms_.push_back(UnZigZag(time));
  }
  for (uint64_t i = 0; i < count; ++i) {
    QUIRE_ASSIGN_OR_RETURN(const uint64_t ordinal, TakeVarint(bytes));
    node.ordinals_.push_back(ordinal);
  }
  for (uint32_t i = 0; i < count; ++i) {
    QUIRE_ASSIGN_OR_RETURN(const uint64_t capture_count, TakeVarint(bytes));
    QUIRE_ASSIGN_OR_RETURN(const ContainerPart part,
                           TakePartReference(bytes, data_size_bytes));
    if (capture_count == 0 || capture_count > kSegmentDocumentCountMax) {
      return Damaged(
          absl::StrCat("a child of a node has ", capture_count, " captures"));
    }
    node.capture_counts_.push_back(capture_count);
    node.parts_.push_back(part);
    if (i > 0 && !(node.Place(i - 1) < node.Place(i))) {
      return Damaged(absl::StrCat("children ", i - 1, " and ", i,
                                  " of a node are not in their order"));
    }
  }
  if (!bytes.empty()) {
    return Damaged(
        absl::StrCat(bytes.size(), " bytes follow a node of captures"));
  }
  return node;
}

uint32_t CaptureNode::ChildOf(const SegmentCapturePlace& place) const {
  // The first child that begins after the place.
  uint32_t begin = 0;
  uint32_t end = count();
  while (begin < end) {
    const uint32_t middle = begin + (end - begin) / 2;
    if (place < Place(middle)) {
      end = middle;
    } else {
      begin = middle + 1;
    }
  }
  return begin == 0 ? 0 : begin - 1;
}

uint64_t CaptureNode::MemoryBytes() const {
  return sizeof(CaptureNode) + keys_.MemoryBytes() +
         count() * (3 * sizeof(uint64_t) + sizeof(ContainerPart));
}

std::string EncodeCaptureNode(std::span<const CaptureChild> children) {
  std::vector<absl::string_view> keys;
  keys.reserve(children.size());
  for (const CaptureChild& child : children) {
    keys.push_back(child.place.key);
  }
  std::string node;
  AppendVarint(children.size(), node);
  AppendCaptureKeys(keys, node);
  for (const CaptureChild& child : children) {
    AppendVarint(ZigZag(child.place.time_ms), node);
  }
  for (const CaptureChild& child : children) {
    AppendVarint(child.place.ordinal, node);
  }
  for (const CaptureChild& child : children) {
    AppendVarint(child.capture_count, node);
    AppendPartReference(child.part, node);
  }
  return node;
}

}  // namespace quire
