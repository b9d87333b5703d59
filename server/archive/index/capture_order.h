// SPDX-License-Identifier: GPL-3.0-or-later
//
// Selects between the documents of one id by type and capture time.
#ifndef QUIRE_SERVER_ARCHIVE_INDEX_CAPTURE_ORDER_H_
#define QUIRE_SERVER_ARCHIVE_INDEX_CAPTURE_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/archive/format/archive_description.h"
#include "server/archive/index/id_index.h"
#include "server/archive/index/packed_vector.h"

namespace quire {

class DocumentIndex;

// A document with the attributes that select it.
struct Capture {
  uint64_t ordinal = 0;
  int64_t time_ms = kNoCaptureTimeMs;

  // Time of a document without capture time: it is older than all others.
  static constexpr int64_t kNoCaptureTimeMs = INT64_MIN;

  // True if `selection` prefers this to `other`; both have selected types.
  bool IsBetterThan(const Capture& other,
                    const DocumentSelection& selection) const;
};

// Few documents of one id are compared one by one. Larger groups are kept in
// order of (record type, time, ordinal), so that look-ups are fast for ids of
// any frequency. Movable. Thread-safe.
class CaptureOrder {
 public:
  // Largest group that is compared one by one.
  static constexpr uint64_t kScannedMax = 64;

  // For no documents.
  CaptureOrder() = default;
  // `repeats` is what IdIndex::Parse() sets.
  CaptureOrder(const DocumentIndex& index, const std::vector<bool>& repeats);

  // Returns the best document of one id, whose ranks are `ranks`; nullopt if
  // none has a selected type. REQUIRES for this and the next: `index` is the
  // one passed to the constructor.
  std::optional<Capture> Find(const DocumentIndex& index, IdIndex::Ranks ranks,
                              const DocumentSelection& selection) const;

  // Adds the record types of the documents of one id to `types`, without
  // duplicates and up to `count_max`; without those that only documents have
  // for which `is_left_out` is true, if it is not null.
  void AddTypes(const DocumentIndex& index, IdIndex::Ranks ranks,
                size_t count_max, const OrdinalPredicate* is_left_out,
                std::vector<std::string>& types) const;

  uint64_t MemoryBytes() const;
  // Upper bound on MemoryBytes() for `count` documents that may share their
  // ids, of `document_count`.
  static uint64_t EstimateBytes(uint64_t count, uint64_t document_count);

 private:
  // Documents of one id.
  struct Group {
    uint64_t first_rank = 0;
    // Index of the first in `ordinals_`.
    uint64_t begin = 0;
  };

  // One group, as a sequence sorted by (type, time, ordinal).
  class Sorted;

  // REQUIRES: the id has more than kScannedMax documents.
  Sorted SortedOf(const DocumentIndex& index, IdIndex::Ranks ranks) const;

  // By rank.
  std::vector<Group> groups_;
  PackedVector ordinals_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_INDEX_CAPTURE_ORDER_H_
