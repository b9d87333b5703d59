// SPDX-License-Identifier: GPL-3.0-or-later
//
// Joins the last segments of an archive into one, so that an archive that grows
// often has few segments.
#ifndef QUIRE_SERVER_ARCHIVE_SEGMENT_MERGER_H_
#define QUIRE_SERVER_ARCHIVE_SEGMENT_MERGER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/payload/payload_codec.h"
#include "server/archive/format/manifest.h"
#include "server/archive/format/member_count.h"
#include "server/archive/segment_reader.h"
#include "server/archive/segment_writer.h"

namespace quire {

// Segments with a layout.
enum class LayoutSegments {
  // They join none: blocks are copied, and a layout is that of all its blocks.
  kStay,
  // They join like others: the text is encoded again.
  kJoin,
};

// Returns the index of the first of the segments to be joined; that of the last
// segment if none are. A segment joins those after it while it is smaller than
// twice all of them, by bytes of text and number of documents, and all together
// at most `size_bytes_max`: each byte is then copied a logarithmic number of
// times, and the sizes of the segments that remain at least double from the end
// on.
size_t FirstToJoin(std::span<const ManifestSegment> segments,
                   uint64_t size_bytes_max, LayoutSegments layouts);

// Copies documents and blocks of segments, in order, to a new one. Payloads are
// copied after their checksum is checked. Where the last block of a segment and
// the first of the next together fit a block, they are encoded as one.
// Thread-compatible.
class SegmentMerger {
 public:
  // `codec` encodes and decodes; `members` counts the blocks of the archive if
  // it is not null. All must outlive the merger. Checks `cancel`, which may be
  // null, for each block.
  SegmentMerger(SegmentWriter& writer, const PayloadCodec& codec,
                uint32_t block_size_bytes, MemberCount* members,
                const std::atomic<bool>* cancel);

  // REQUIRES: a segment without a layout, of the archive's codec.
  // Errors: DataLoss  a block is damaged, or `members` lacks it; Cancelled; as
  //   SegmentWriter.
  absl::Status Add(const SegmentReader& segment);

  // Call once, after the last segment.
  absl::Status Finish() { return WritePending(); }

 private:
  // A block, with the frame that it was read from.
  struct Block {
    std::vector<uint8_t> frame;
    Payload payload;
    size_t size_bytes = 0;
  };

  absl::StatusOr<Block> Read(const SegmentReader& segment,
                             uint64_t block_index) const;
  // Replaces the pending block and `next` by one, if they fit.
  absl::StatusOr<bool> JoinPending(const Block& next);
  absl::Status Decode(const Block& block, MutableByteView text);
  absl::Status WritePending();

  SegmentWriter& writer_;
  const PayloadCodec& codec_;
  const uint32_t block_size_bytes_;
  MemberCount* const members_;
  const std::atomic<bool>* const cancel_;
  const std::unique_ptr<PayloadCodec::Scratch> scratch_;
  // The last block of the segment before.
  std::optional<Block> pending_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_SEGMENT_MERGER_H_
