// SPDX-License-Identifier: GPL-3.0-or-later
//
// An archive in the order in which its text is stored: each block once, with
// all parts of the logical space that its bytes belong to.
#ifndef QUIRE_SERVER_ARCHIVE_STORED_ORDER_H_
#define QUIRE_SERVER_ARCHIVE_STORED_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

#include "server/archive/archive.h"

namespace quire {

// A part of a range of blocks, and its offset in the logical space.
struct StoredPlace {
  // Offset in the logical space.
  uint64_t offset = 0;
  // Offset in the text of the range.
  uint32_t offset_in_text = 0;
  uint32_t size_bytes = 0;

  bool operator==(const StoredPlace&) const = default;
};

// Thread-compatible. Views the archive.
class StoredOrder {
 public:
  // Position before a block; some places of the block may have been returned
  // already.
  struct Position {
    // Bytes of stored text before it, over all segments in order.
    uint64_t offset = 0;
    uint64_t places_given = 0;

    bool operator==(const Position&) const = default;
  };

  struct BlockRange {
    // Whole blocks of one segment, in order.
    std::vector<BlockSlice> blocks;
    uint64_t size_bytes = 0;
    std::vector<StoredPlace> places;
    // Position after the range.
    Position next;
  };

  // True if a segment of the view has a layout, the view ends with a segment,
  // and the runs of each segment can be numbered with 32 bits.
  static bool IsThere(const ArchiveView& view);

  // Returns a number for the segments of the view. Positions are of one number:
  // an archive that has grown may have joined segments. Takes time in
  // proportion to the number of segments.
  static uint64_t SegmentsId(const ArchiveView& view);

  // Upper bound on its memory: 24 bytes per run of the largest segment while
  // that is begun, 8 later.
  static uint64_t MemoryBytes(const Archive& archive);

  // REQUIRES: IsThere(view).
  explicit StoredOrder(const ArchiveView& view);

  // Continues at `position`, the `next` of an earlier range. Takes the time of
  // a look-up in each segment, not of the blocks before. REQUIRES: the first
  // call. Errors: OutOfRange  no block begins there.
  absl::Status GoTo(Position position);

  // Bytes of stored text before the next block.
  uint64_t offset() const { return segment_start_ + start_; }

  bool at_end() const { return segment_ == segment_count_; }

  // Returns the next blocks, at least one: as many as `fits` accepts, with at
  // most `places_max` places. A block that has more places is returned again
  // with the others. Does not move. REQUIRES: !at_end(), places_max > 0.
  BlockRange Peek(uint64_t size_bytes_max, size_t places_max,
                  absl::FunctionRef<bool(const std::vector<BlockSlice>&)> fits);

  // Moves past `range`, the last result of Peek().
  void Pass(const BlockRange& range);

  // Number of runs that Peek() and Pass() have examined: about two per place
  // returned and `places_max` per range.
  uint64_t work() const { return work_; }

 private:
  void LoadSegment();
  // Moves to a segment that has blocks.
  void SkipEmptySegments();
  uint64_t EndOfRun(uint64_t run) const;
  // Adds the runs that begin before `end` to the open runs.
  void StartRuns(uint64_t end);
  // True if more than `max` open runs begin before `end`.
  bool HasOpenMoreThan(size_t max, uint64_t end) const;
  // Appends the places of the open runs before `end` that were not returned
  // yet, up to `max` places in total. True if none remain.
  bool AppendPlaces(uint64_t end, size_t max, std::vector<StoredPlace>& places);

  const Archive* archive_;
  // Segments of the view.
  uint32_t segment_count_;
  uint32_t segment_ = 0;
  bool is_loaded_ = false;
  uint64_t block_ = 0;
  // Start of the block in the segment's stored text.
  uint64_t start_ = 0;
  // Size of the stored text of all earlier segments.
  uint64_t segment_start_ = 0;
  uint64_t places_given_ = 0;
  // Runs of the segment in stored order; those before `next_` have begun. After
  // it, those that have begun and not ended.
  std::vector<uint32_t> runs_;
  size_t next_ = 0;
  std::vector<uint32_t> open_;
  uint64_t work_ = 0;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_STORED_ORDER_H_
