// SPDX-License-Identifier: GPL-3.0-or-later
//
// Look-ups in the index of captures of an archive, over all its segments.
#ifndef QUIRE_SERVER_ARCHIVE_CAPTURE_SCAN_H_
#define QUIRE_SERVER_ARCHIVE_CAPTURE_SCAN_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/positions.h"
#include "codecs/surt/surt_key.h"
#include "server/archive/archive.h"
#include "server/archive/archive_part.h"
#include "server/archive/captures/capture_cursor.h"

namespace quire {

struct CaptureQuery {
  enum class Order {
    // By key, then time, then ordinal.
    kKey,
    // For one key: the newest first; of equal times the last in the archive.
    kNewestFirst,
    // For one key: by the distance to `closest_ms`; of equal distances the
    // earlier time first, and of equal times that in kNewestFirst, if they are
    // earlier, else that in kKey.
    kClosest,
  };

  SurtRange range = {};
  // Captures from this time to that time, both included.
  int64_t from_ms = std::numeric_limits<int64_t>::min();
  int64_t until_ms = std::numeric_limits<int64_t>::max();
  Order order = Order::kKey;
  // Within kCaptureTimeMsMax of 1970.
  int64_t closest_ms = 0;
};

// Coverage of an archive by its index of captures.
struct CaptureIndexing {
  uint64_t capture_count = 0;
  // Documents of segments that have records of the types of captures, and no
  // index: an earlier version wrote them.
  uint64_t unindexed_document_count = 0;
  // Memory of the heads, which opened segments hold.
  uint64_t memory_bytes = 0;
};

// Returns the sums over segments with any of the first `document_count`
// documents.
CaptureIndexing IndexingOf(const Archive& archive, uint64_t document_count);

// Returns the stored size of the index of captures of all segments. Blocks.
// Errors: DataLoss  names the file; I/O errors.
absl::StatusOr<uint64_t> StoredCapturesSizeBytes(const Archive& archive);

// Where a scan is.
struct CapturePlace {
  std::string key = {};
  int64_t time_ms = 0;
  // In the archive.
  DocumentOrdinal ordinal = {};
};

struct FoundCapture {
  CapturePlace place = {};
  uint32_t status = 0;
  std::string digest = {};
  // The URL is the document's id from this byte on; unset: `url`.
  std::optional<uint32_t> id_skip_bytes = {};
  std::string url = {};
};

// Merges the captures of all segments. For each it holds a part or a few of its
// index. Thread-compatible; any thread may use it if `load` allows that.
class CaptureScan {
 public:
  // The first `document_count` documents of `archive`, which must outlive the
  // scan, those after `after` in the order of the query if it is set.
  // REQUIRES: kNewestFirst and kClosest have the range of one key.
  CaptureScan(const Archive& archive, uint64_t document_count,
              CaptureQuery query, std::optional<CapturePlace> after,
              ArchivePartLoader load);
  ~CaptureScan();
  CaptureScan(const CaptureScan&) = delete;
  CaptureScan& operator=(const CaptureScan&) = delete;

  enum class Step {
    // `found` is the next capture.
    kFound,
    // Captures up to `found.place` were passed: the last is not in the query.
    // Returned so that callers can bound the work.
    kPassed,
    // Parts are not at hand: all that are known to be needed were asked for.
    kNotAtHand,
    kEnd,
  };

  // Errors: DataLoss  an index is damaged; those of `load`.
  absl::StatusOr<Step> Next(FoundCapture& found);

 private:
  struct Stream;

  void AddStream(uint32_t segment_index, bool forward);
  // Moves to the first capture. False: not at hand.
  absl::StatusOr<bool> Start(Stream& stream);
  // Moves past the current capture.
  absl::StatusOr<bool> Advance(Stream& stream);
  // Moves past captures that are outside the range of times.
  absl::StatusOr<bool> PassTimes(Stream& stream);
  // Ends the stream if its capture is not of the range.
  void CheckEnd(Stream& stream) const;
  // True if `a` comes first in the order of the query.
  bool IsBefore(const Stream& a, const Stream& b) const;
  bool IsInQuery(const Stream& stream) const;
  uint64_t Distance(int64_t time_ms) const;
  // `ordinal` of the archive in the segment of the stream; 0 if it is before.
  static uint64_t OrdinalIn(const Stream& stream, uint64_t ordinal);
  // Where a stream begins, and where one that goes back does, both borrowed
  // from this.
  SegmentCapturePlace FirstPlace(const Stream& stream) const;
  SegmentCapturePlace EndPlace(const Stream& stream) const;

  const uint64_t document_count_;
  const CaptureQuery query_;
  const std::optional<CapturePlace> after_;
  const Archive& archive_;
  const ArchivePartLoader load_;
  CaptureCache cache_;
  std::vector<std::unique_ptr<Stream>> streams_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_CAPTURE_SCAN_H_
