// SPDX-License-Identifier: GPL-3.0-or-later
//
// A leaf of the index of captures (FORMAT.md, "Captures").
#ifndef QUIRE_SERVER_ARCHIVE_CAPTURES_CAPTURE_LEAF_H_
#define QUIRE_SERVER_ARCHIVE_CAPTURES_CAPTURE_LEAF_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"
#include "server/archive/captures/capture_keys.h"
#include "server/archive/format/column.h"

namespace quire {

// Captures of a leaf.
inline constexpr uint32_t kCaptureLeafCountMax = 4096;

// A place in the order of captures, which is that of its members.
struct SegmentCapturePlace {
  // Borrowed.
  absl::string_view key = {};
  int64_t time_ms = std::numeric_limits<int64_t>::min();
  // In the segment.
  uint64_t ordinal = 0;

  bool operator<(const SegmentCapturePlace& other) const {
    return std::tie(key, time_ms, ordinal) <
           std::tie(other.key, other.time_ms, other.ordinal);
  }
};

// A capture of a segment. Its strings are borrowed.
struct SegmentCapture {
  absl::string_view key = {};
  int64_t time_ms = 0;
  // In the segment.
  uint64_t ordinal = 0;
  // Of HTTP; 0 without one.
  uint32_t status = 0;
  // Bytes of the document's id before its URL; unset if `url` states that.
  std::optional<uint32_t> id_skip_bytes = 0;
  absl::string_view url = {};
  // As the record states it; empty without one.
  std::string digest = {};

  SegmentCapturePlace place() const {
    return {.key = key, .time_ms = time_ms, .ordinal = ordinal};
  }
};

// Borrows the bytes that it was parsed from. Immutable.
class CaptureLeaf {
 public:
  // `bytes` are untrusted, of a segment of `document_count` documents.
  // Errors: DataLoss.
  static absl::StatusOr<CaptureLeaf> Parse(ByteView bytes,
                                           uint64_t document_count);

  uint32_t count() const { return keys_.count(); }

  // Valid as long as this and the bytes. REQUIRES for these: index < count().
  SegmentCapture operator[](uint32_t index) const;

  absl::string_view Key(uint32_t index) const { return keys_[index]; }

  int64_t TimeMs(uint32_t index) const {
    return first_time_ms_ + static_cast<int64_t>((*times_)[index] * time_unit_);
  }

  SegmentCapturePlace Place(uint32_t index) const {
    return {.key = keys_[index],
            .time_ms = TimeMs(index),
            .ordinal = first_ordinal_ + (*ordinals_)[index]};
  }

  // Index of the first capture that is not before `place`; count() if all are.
  uint32_t LowerBound(const SegmentCapturePlace& place) const;

  // Without the bytes.
  uint64_t MemoryBytes() const;

 private:
  CaptureLeaf() = default;
  absl::Status TakeNumbers(ByteView& bytes, uint64_t document_count);
  absl::Status TakeTexts(ByteView& bytes);

  CaptureKeys keys_;
  int64_t first_time_ms_ = 0;
  uint64_t time_unit_ = 1;
  uint64_t first_ordinal_ = 0;
  // Set.
  std::optional<ColumnView> times_;
  std::optional<ColumnView> ordinals_;
  std::optional<ColumnView> statuses_;
  std::optional<ColumnView> id_skips_;
  std::optional<ColumnView> digest_kinds_;
  // The bytes of SHA-1, or text, of each digest; empty without one.
  std::vector<absl::string_view> digests_;
  // Each stated URL; empty where the id has it.
  std::vector<absl::string_view> urls_;
};

// Encodes a leaf. REQUIRES: 1 to kCaptureLeafCountMax captures in their order,
// whose keys have at most kCaptureKeysSizeBytesMax unless there is one.
std::string EncodeCaptureLeaf(std::span<const SegmentCapture> captures);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_CAPTURES_CAPTURE_LEAF_H_
