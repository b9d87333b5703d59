// SPDX-License-Identifier: GPL-3.0-or-later
//
// Which of several documents of one id was captured when.
#ifndef QUIRE_SERVER_ARCHIVE_INDEX_CAPTURE_ORDER_H_
#define QUIRE_SERVER_ARCHIVE_INDEX_CAPTURE_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include "server/archive/format/archive_description.h"
#include "server/archive/index/id_table.h"
#include "server/archive/index/packed_vector.h"

namespace quire {

class DocumentIndex;

// A document, and what decides between it and others of its id.
struct Capture {
  uint64_t ordinal = 0;
  int64_t time_ms = kNoCaptureTimeMs;

  // What a document without a capture time has: it is older than all others.
  static constexpr int64_t kNoCaptureTimeMs = INT64_MIN;

  // Whether `selection` prefers this to `other`, both of its types.
  bool IsBetterThan(const Capture& other,
                    const DocumentSelection& selection) const;
};

// Where few documents share an id they are compared one by one. Those of an id
// that more share are kept here in order of (record type, time, ordinal), so
// that no id takes long, however often it occurs. Movable. Thread-safe.
class CaptureOrder {
 public:
  // Documents of one id that are compared one by one.
  static constexpr uint64_t kScannedMax = 64;

  // For no documents.
  CaptureOrder() = default;
  // `repeats` says per rank whether the id is the same as the one before.
  CaptureOrder(const DocumentIndex& index, const std::vector<bool>& repeats);

  // The best of the documents of one id, whose ranks are `ranks`; nullopt if
  // none has a type of the selection. REQUIRES for this and the next: `index`
  // is the one that this was made for.
  std::optional<Capture> Find(const DocumentIndex& index, IdTable::Ranks ranks,
                              const DocumentSelection& selection) const;

  // Adds the record types of the documents of one id to `types`, which has each
  // once and grows to at most `count_max`.
  void AddTypes(const DocumentIndex& index, IdTable::Ranks ranks,
                size_t count_max, std::vector<std::string>& types) const;

  uint64_t MemoryBytes() const;
  // At least what MemoryBytes() will be, for so many documents.
  static uint64_t EstimateBytes(uint64_t count);

 private:
  // The documents of one id.
  struct Group {
    uint64_t first_rank = 0;
    // Of the first in `ordinals_`.
    uint64_t begin = 0;
  };

  // One group, as a sequence sorted by (type, time, ordinal).
  class Sorted;

  // REQUIRES: the id has more than kScannedMax documents.
  Sorted SortedOf(const DocumentIndex& index, IdTable::Ranks ranks) const;

  // By rank.
  std::vector<Group> groups_;
  PackedVector ordinals_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_INDEX_CAPTURE_ORDER_H_
