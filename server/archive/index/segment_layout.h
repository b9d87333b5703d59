// SPDX-License-Identifier: GPL-3.0-or-later
//
// Maps the text of a segment to the text of its blocks.
#ifndef QUIRE_SERVER_ARCHIVE_INDEX_SEGMENT_LAYOUT_H_
#define QUIRE_SERVER_ARCHIVE_INDEX_SEGMENT_LAYOUT_H_

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "server/archive/index/elias_fano.h"
#include "server/archive/index/packed_vector.h"

namespace quire {

// All offsets are in the segment: in its text, or in the stored text, which is
// that of its blocks in order. Movable. Thread-safe.
class SegmentLayout {
 public:
  // Text stored in its own order.
  explicit SegmentLayout(uint64_t size_bytes = 0);

  // `section` is untrusted. Each byte of the stored text is in a run of the
  // result, and each run in the stored text. Needs 16 bytes per run
  // temporarily.
  // Errors: DataLoss            not a layout of this text size and run count.
  //         FailedPrecondition  runs of a kind unknown to this program.
  static absl::StatusOr<SegmentLayout> Parse(ByteView section,
                                             uint64_t size_bytes,
                                             uint64_t stored_text_size_bytes,
                                             uint64_t run_count);

  bool is_identity() const { return starts_.size() == 0; }

  uint64_t run_count() const {
    return is_identity() ? 1 : stored_offsets_.size();
  }

  // Returns the run that contains byte `offset` of the text; logarithmic time.
  // REQUIRES: offset < size_bytes.
  uint64_t RunAt(uint64_t offset) const;

  // Offset of the run in the text. REQUIRES: run < run_count().
  uint64_t StartOf(uint64_t run) const {
    return is_identity() ? 0 : starts_[run];
  }

  struct StoredPiece {
    uint64_t stored_offset = 0;
    uint64_t size_bytes = 0;
  };

  // Returns the part of the run from byte `offset` of the text on.
  // REQUIRES: the run contains `offset`; the next run continues where this
  // ends.
  StoredPiece PieceOf(uint64_t run, uint64_t offset) const;

  // Calls `visit` for all parts of the text, in order, that are stored in the
  // `size_bytes` bytes from `stored_offset` on. Visits every run.
  void VisitUses(uint64_t stored_offset, uint64_t size_bytes,
                 const std::function<void(uint64_t offset,
                                          uint64_t size_bytes)>& visit) const;

  uint64_t MemoryBytes() const;
  // Upper bound on MemoryBytes().
  static uint64_t EstimateBytes(uint64_t size_bytes,
                                uint64_t stored_text_size_bytes,
                                uint64_t run_count);
  // Memory of Parse() in addition to the result and the section.
  static uint64_t EstimateParsingBytes(uint64_t run_count);

 private:
  uint64_t size_bytes_ = 0;
  // Start of each run in the text, and the end of the last.
  EliasFano starts_;
  PackedVector stored_offsets_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_INDEX_SEGMENT_LAYOUT_H_
