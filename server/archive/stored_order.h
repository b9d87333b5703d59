// SPDX-License-Identifier: GPL-3.0-or-later
//
// An archive in the order in which its text is stored: each block once, with
// all places of the logical space that its bytes belong to.
#ifndef QUIRE_SERVER_ARCHIVE_STORED_ORDER_H_
#define QUIRE_SERVER_ARCHIVE_STORED_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

#include "server/archive/archive.h"

namespace quire {

// A part of a range of blocks, and its place in the logical space.
struct StoredPlace {
  // Of the logical space.
  uint64_t offset = 0;
  // In the text of the range.
  uint32_t offset_in_text = 0;
  uint32_t size_bytes = 0;

  bool operator==(const StoredPlace&) const = default;
};

// Thread-compatible. Views the archive.
class StoredOrder {
 public:
  // Before a block; some of its places may have been given already.
  struct Position {
    // Bytes of stored text, of all segments in order.
    uint64_t offset = 0;
    uint64_t places_given = 0;

    bool operator==(const Position&) const = default;
  };

  struct BlockRange {
    // Whole blocks of one segment, in order.
    std::vector<BlockSlice> blocks;
    uint64_t size_bytes = 0;
    std::vector<StoredPlace> places;
    // What follows it.
    Position next;
  };

  // Whether there is another order than the logical one, and memory can hold
  // what it takes.
  static bool IsThere(const Archive& archive);

  // What one takes at most: 24 bytes for each run of the largest segment while
  // that is begun, 8 later.
  static uint64_t MemoryBytes(const Archive& archive);

  explicit StoredOrder(const Archive& archive) : archive_(&archive) {}

  // Continues at `position`, the next of an earlier range. REQUIRES: the first
  // call. Errors: OutOfRange  no block begins there.
  absl::Status GoTo(Position position);

  // Bytes of stored text before the next block.
  uint64_t offset() const { return segment_start_ + start_; }

  bool at_end() const { return segment_ == archive_->info().segment_count; }

  // The next blocks: as many as `fits`, but one in any case, with at most
  // `places_max` places. A block that has more comes again, with others.
  // Does not move. REQUIRES: !at_end(), places_max > 0.
  BlockRange Peek(uint64_t size_bytes_max, size_t places_max,
                  absl::FunctionRef<bool(const std::vector<BlockSlice>&)> fits);

  // Moves past `range`, the last that Peek() returned.
  void Pass(const BlockRange& range);

  // Runs that Peek() and Pass() have looked at: some two for each place that
  // was given and `places_max` for each range.
  uint64_t work() const { return work_; }

 private:
  void LoadSegment();
  // To a segment that has blocks.
  void SkipEmptySegments();
  uint64_t EndOfRun(uint64_t run) const;
  // Remembers the runs that begin before `end`.
  void StartRuns(uint64_t end);
  // True if more than `max` of them do.
  bool HasOpenMoreThan(size_t max, uint64_t end) const;
  // Appends the places before `end` of the runs that are remembered, without
  // those that were given, until there are `max`. True if none is left.
  bool AppendPlaces(uint64_t end, size_t max, std::vector<StoredPlace>& places);

  const Archive* archive_;
  uint32_t segment_ = 0;
  bool is_loaded_ = false;
  uint64_t block_ = 0;
  // In the segment's stored text, of the block.
  uint64_t start_ = 0;
  // Stored text of the segments before.
  uint64_t segment_start_ = 0;
  uint64_t places_given_ = 0;
  // The segment's runs by where they are stored, of which those before `next_`
  // have begun, and those of these that have not ended.
  std::vector<uint32_t> runs_;
  size_t next_ = 0;
  std::vector<uint32_t> open_;
  uint64_t work_ = 0;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_STORED_ORDER_H_
