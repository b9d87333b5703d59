// SPDX-License-Identifier: GPL-3.0-or-later
//
// Arbitrary bytes as the head, as a node and as a leaf of an index of captures.
// Whatever is accepted must be readable, and in order.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "codecs/base/bytes.h"
#include "codecs/base/check.h"
#include "server/archive/captures/capture_leaf.h"
#include "server/archive/captures/capture_node.h"
#include "server/archive/captures/segment_captures.h"

namespace quire {
namespace {

constexpr uint64_t kDataSizeBytes = 1 << 20;

void ParseHead(ByteView bytes, uint64_t document_count) {
  const auto captures =
      SegmentCaptures::Parse(bytes, document_count, kDataSizeBytes);
  if (captures.ok()) {
    QUIRE_CHECK(captures->capture_count <= document_count);
    QUIRE_CHECK(captures->Encode() == AsText(bytes));
  }
}

void ParseNode(ByteView bytes) {
  const auto node = CaptureNode::Parse(bytes, kDataSizeBytes);
  if (!node.ok()) {
    return;
  }
  for (uint32_t i = 0; i < node->count(); ++i) {
    const CaptureChild child = (*node)[i];
    QUIRE_CHECK(child.part.offset < kDataSizeBytes);
    QUIRE_CHECK(node->ChildOf(child.place) == i);
  }
}

void ParseLeaf(ByteView bytes, uint64_t document_count) {
  const auto leaf = CaptureLeaf::Parse(bytes, document_count);
  if (!leaf.ok()) {
    return;
  }
  std::optional<SegmentCapture> last;
  for (uint32_t i = 0; i < leaf->count(); ++i) {
    const SegmentCapture capture = (*leaf)[i];
    QUIRE_CHECK(!capture.key.empty() && capture.ordinal < document_count);
    QUIRE_CHECK(!last.has_value() || last->place() < capture.place());
    QUIRE_CHECK(leaf->LowerBound(capture.place()) == i);
    last = capture;
  }
}

}  // namespace
}  // namespace quire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace quire;  // NOLINT(google-build-using-namespace)
  if (size < 2) {
    return 0;
  }
  const ByteView bytes(data + 2, size - 2);
  const uint64_t count = uint64_t{data[1]} + 1;
  switch (data[0] % 4) {
    case 0:
      ParseHead(bytes, count);
      break;
    case 1:
      ParseNode(bytes);
      break;
    default:
      ParseLeaf(bytes, count);
  }
  return 0;
}
