// SPDX-License-Identifier: GPL-3.0-or-later
//
// Reads the fields of the documents of a damaged segment.
#ifndef QUIRE_SERVER_ARCHIVE_REPAIR_SALVAGED_FIELDS_H_
#define QUIRE_SERVER_ARCHIVE_REPAIR_SALVAGED_FIELDS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include "codecs/filter/field_value.h"
#include "codecs/filter/filter.h"
#include "server/archive/fields/segment_field_reader.h"
#include "server/archive/segment_reader.h"

namespace quire {

// Each part of the container is damaged alone: a damaged block loses the values
// of one field in a group of documents, a damaged page those of all fields in
// its groups. Lost values are null. Thread-compatible.
class SalvagedFields {
 public:
  using OnDamage = std::function<void(const absl::Status&)>;

  // Reads the columns with these indexes in segment.fields().columns().
  // `first_ordinal` is that of the segment's first document, for messages.
  // `on_damage` is called once for each damaged part that is needed.
  // `segment` must outlive this.
  SalvagedFields(const SegmentReader& segment,
                 const std::vector<size_t>& columns, uint64_t first_ordinal,
                 OnDamage on_damage);
  // Not movable: the readers refer to the cache.
  SalvagedFields(const SalvagedFields&) = delete;
  SalvagedFields& operator=(const SalvagedFields&) = delete;

  // Returns a value for each column, valid until the next call. Sets
  // `lost_count` to the number of those that are lost. REQUIRES: the ordinal,
  // in the segment, is above that of the last call.
  absl::Span<const FieldValue> Read(uint64_t ordinal, uint64_t& lost_count);

 private:
  struct Column {
    const FieldColumn* description = nullptr;
    std::unique_ptr<SegmentFieldReader> reader = nullptr;
    // In the current group.
    bool is_lost = false;
  };

  // Moves to the group of the document.
  void BeginGroup(uint64_t ordinal);
  // "FILE: SUBJECT of documents A to B: REASON", up to the end of the group.
  void Damage(uint64_t ordinal, absl::string_view subject,
              const absl::Status& reason);

  const SegmentReader& segment_;
  const uint64_t first_ordinal_;
  const OnDamage on_damage_;
  FieldCache cache_;
  std::vector<Column> columns_;
  // Ordinal past the current group.
  uint64_t group_end_ = 0;
  std::vector<FieldView> found_;
  std::vector<FieldValue> values_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_REPAIR_SALVAGED_FIELDS_H_
