// SPDX-License-Identifier: GPL-3.0-or-later
//
// Walks over the captures of one segment, in both directions.
#ifndef QUIRE_SERVER_ARCHIVE_CAPTURES_CAPTURE_CURSOR_H_
#define QUIRE_SERVER_ARCHIVE_CAPTURES_CAPTURE_CURSOR_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "server/archive/captures/capture_leaf.h"
#include "server/archive/captures/capture_node.h"
#include "server/archive/captures/segment_captures.h"
#include "server/archive/container/container_part.h"

namespace quire {

// Parsed parts of cursors that share it, a few of them. Thread-compatible.
class CaptureCache {
 public:
  static constexpr uint64_t kSizeBytesMax = uint64_t{4} << 20;

 private:
  friend class CaptureCursor;

  struct Leaf {
    PartBytes bytes;
    CaptureLeaf leaf;
  };

  // Segment, and offset of the part in the container's data.
  using Key = std::pair<uint32_t, uint64_t>;

  // Forgets all if there is more than kSizeBytesMax.
  void Trim();

  absl::flat_hash_map<Key, std::shared_ptr<const CaptureNode>> nodes_;
  absl::flat_hash_map<Key, std::shared_ptr<const Leaf>> leaves_;
  uint64_t size_bytes_ = 0;
};

// Copyable: copies are at the same capture. Calls that move it return false if
// a part is not at hand, which `load` was asked for; it has not moved then.
// Thread-compatible.
class CaptureCursor {
 public:
  // `key` distinguishes segments with one cache. All arguments must outlive the
  // cursor. REQUIRES: captures.capture_count > 0; Seek() comes first.
  CaptureCursor(const SegmentCaptures& captures, uint32_t key,
                CaptureCache& cache, const PartLoader& load)
      : captures_(&captures), key_(key), cache_(&cache), load_(&load) {}

  // Moves to the first capture that is not before `place`; to the end if all
  // are. Errors: DataLoss; those of `load`.
  absl::StatusOr<bool> Seek(const SegmentCapturePlace& place);

  // True after the last capture.
  bool at_end() const { return index_ == leaf_->leaf.count(); }

  // Valid until the cursor moves. REQUIRES for these: !at_end().
  SegmentCapture Get() const { return leaf_->leaf[index_]; }

  absl::string_view Key() const { return leaf_->leaf.Key(index_); }

  int64_t TimeMs() const { return leaf_->leaf.TimeMs(index_); }

  // Moves to the next capture, or to the end. REQUIRES: !at_end(). Errors: as
  // Seek().
  absl::StatusOr<bool> Next();

  // Moves to the capture before; `is_first` is set, and the cursor stays, if
  // there is none. Errors: as Seek().
  absl::StatusOr<bool> Previous(bool& is_first);

 private:
  struct Step {
    std::shared_ptr<const CaptureNode> node;
    uint32_t index = 0;
  };

  enum class Side { kFirst, kLast };

  using Chooser = absl::FunctionRef<uint32_t(const CaptureNode& node)>;

  // Descends from `part`, which is `path.size()` levels below the root, to a
  // leaf, and moves to that.
  absl::StatusOr<bool> Descend(
      std::vector<Step> path, ContainerPart part, Chooser choose_child,
      absl::FunctionRef<uint32_t(const CaptureLeaf& leaf)> choose_capture);
  // Moves to the first capture of the next leaf, or the last of the one before;
  // `found` is false if there is none.
  absl::StatusOr<bool> MoveLeaf(bool forward, bool& found);
  // Null if it is not at hand.
  absl::StatusOr<std::shared_ptr<const CaptureNode>> NodeOf(
      const ContainerPart& part);
  absl::StatusOr<std::shared_ptr<const CaptureCache::Leaf>> LeafOf(
      const ContainerPart& part);

  const SegmentCaptures* captures_;
  uint32_t key_;
  CaptureCache* cache_;
  const PartLoader* load_;
  std::vector<Step> path_;
  std::shared_ptr<const CaptureCache::Leaf> leaf_;
  uint32_t index_ = 0;
};

// Calls `visit` with each capture of a segment, in order, until it fails.
// `load` must not return parts that are not at hand.
// Errors: DataLoss, also if there are more or fewer captures than stated; those
//   of `load` and `visit`.
absl::Status VisitCaptures(
    const SegmentCaptures& captures, const PartLoader& load,
    absl::FunctionRef<absl::Status(const SegmentCapture&)> visit);

// Returns the stored size of all parts of the index of a segment; reads the
// nodes, and no leaf unless that is the root. As VisitCaptures().
// Errors: DataLoss; those of `load`.
absl::StatusOr<uint64_t> StoredCapturesSizeBytes(
    const SegmentCaptures& captures, const PartLoader& load);

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_CAPTURES_CAPTURE_CURSOR_H_
