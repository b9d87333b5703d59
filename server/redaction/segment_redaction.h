// SPDX-License-Identifier: GPL-3.0-or-later
//
// Plans the removal of documents from the stored text of a segment, and from
// the layout that maps it to the documents.
#ifndef QUIRE_SERVER_REDACTION_SEGMENT_REDACTION_H_
#define QUIRE_SERVER_REDACTION_SEGMENT_REDACTION_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"

#include "codecs/base/bytes.h"
#include "codecs/reorder/stored_run.h"
#include "server/archive/index/segment_layout.h"
#include "server/redaction/window_table.h"

namespace quire {

// Stored text that no remaining document uses becomes zeros in its place. Text
// that is shared with one stays, and the removed documents get zeros elsewhere:
// at the end of the stored text, if there are such documents. Where only a
// removed document joined two texts that stay, a zero is inserted between them,
// so that the stored text has no window (window_table.h) of the removed one.
//
// Offsets are those of the segment's text or stored text before the change.
struct SegmentRedaction {
  // Stored bytes that become zeros: in order, not empty, not adjacent.
  std::vector<TextInterval> zeros;
  // Offsets in the stored text, ascending: a zero is inserted before each. They
  // are not in `zeros`.
  std::vector<uint64_t> cuts;
  // Number of zeros after the stored text; at most `block_size_bytes`.
  uint64_t end_zeros_size_bytes = 0;
  // Runs of the new layout; empty for text that is stored in its own order.
  std::vector<StoredRun> runs;
  // Size of the new stored text.
  uint64_t stored_text_size_bytes = 0;
  // Text of the removed documents that remaining ones share.
  uint64_t shared_size_bytes = 0;

  // True if the stored bytes [begin, end) change, or zeros are inserted among
  // them or before the first.
  bool Changes(uint64_t begin, uint64_t end) const;

  // Returns the new text of the stored bytes `text`, which begin at `begin`.
  std::vector<uint8_t> Apply(uint64_t begin, ByteView text) const;

  // Calls `visit` for the parts of [begin, end) that stay, in order. The text
  // does not continue from one call to the next, except if `continues`: the
  // part begins at `begin` and follows what is before `begin`.
  void VisitKept(
      uint64_t begin, uint64_t end,
      absl::FunctionRef<void(TextInterval part, bool continues)> visit) const;
};

// Plans the removal of the parts `removed` of a segment's text, which are in
// order and not adjacent. Memory: some 100 bytes per run of the layout.
SegmentRedaction PlanSegmentRedaction(const SegmentLayout& layout,
                                      uint64_t size_bytes,
                                      uint64_t stored_text_size_bytes,
                                      std::span<const TextInterval> removed,
                                      uint32_t block_size_bytes);

}  // namespace quire

#endif  // QUIRE_SERVER_REDACTION_SEGMENT_REDACTION_H_
