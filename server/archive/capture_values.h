// SPDX-License-Identifier: GPL-3.0-or-later
//
// Statuses and digests of captures by document, for filters over whole
// archives.
#ifndef QUIRE_SERVER_ARCHIVE_CAPTURE_VALUES_H_
#define QUIRE_SERVER_ARCHIVE_CAPTURE_VALUES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"

#include "codecs/base/positions.h"
#include "server/archive/archive.h"
#include "server/archive/archive_part.h"
#include "server/archive/captures/capture_digest.h"

namespace quire {

// Holds the values of one segment at a time. Thread-compatible.
class CaptureValues {
 public:
  // For each capture of a segment; digests other than those of SHA-1 take more.
  static constexpr uint64_t kCaptureSizeBytes = 28;

  // `archive` must outlive it. `load` must not return parts that are not at
  // hand. `check`, which may be empty, is called while a segment is read; an
  // error ends that.
  CaptureValues(const Archive& archive, ArchivePartLoader load,
                std::function<absl::Status()> check)
      : archive_(archive), load_(std::move(load)), check_(std::move(check)) {}

  // Sets the values of a document: 0 and empty if it has none, or is not a
  // capture. Documents are best asked for in order, as a segment is read whole.
  // Blocks as `load` does. Errors: DataLoss; those of `load` and `check`.
  absl::Status Find(DocumentOrdinal ordinal, uint32_t& status,
                    std::string& digest);

  // Upper bound on its memory, in bytes.
  static uint64_t EstimateBytes(const Archive& archive);

 private:
  struct Entry {
    // In the segment.
    uint32_t ordinal = 0;
    uint16_t status = 0;
    CaptureDigestKind kind = CaptureDigestKind::kNone;
    // Set for kSha1.
    Sha1 sha1 = {};
  };

  static_assert(sizeof(Entry) <= kCaptureSizeBytes);

  absl::Status Load(uint32_t segment_index);

  const Archive& archive_;
  const ArchivePartLoader load_;
  const std::function<absl::Status()> check_;
  // Of the loaded segment; its documents are from `begin_` on, below `end_`.
  uint64_t begin_ = 0;
  uint64_t end_ = 0;
  // By ordinal.
  std::vector<Entry> entries_;
  // Of kText, by the ordinal in the segment.
  absl::flat_hash_map<uint32_t, std::string> texts_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_CAPTURE_VALUES_H_
