// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/document_cursor.h"

#include "server/archive/archive_parts.h"
#include "server/archive/format/archive_format.h"

namespace quire {

void DocumentCursor::MoveTo(DocumentOrdinal ordinal) {
  if (documents_ == nullptr || ordinal.value < first_ordinal_ ||
      ordinal.value >= end_ordinal_) {
    const Archive::Segment& segment = archive_.SegmentOfDocument(ordinal.value);
    documents_ = &segment.reader().documents();
    first_ordinal_ = segment.first_ordinal;
    end_ordinal_ = first_ordinal_ + documents_->count();
    start_ = segment.start;
    ids_.reset();
  }
  local_ = ordinal.value - first_ordinal_;
}

LogicalRange DocumentCursor::Range() const {
  LogicalRange range = documents_->Range(local_);
  range.offset.value += start_;
  return range;
}

absl::string_view DocumentCursor::Id() {
  const IdIndex& ids = documents_->ids();
  if (ids.size() == 0) {
    return "";
  }
  const uint64_t rank = ids.RankOf(local_);
  if (ids_.has_value() && ids_->rank() + 1 == rank) {
    ids_->Next();
  } else if (!ids_.has_value() || ids_->rank() != rank) {
    ids_.emplace(ids, rank);
  }
  return ids_->id();
}

absl::string_view DocumentCursor::RecordType() const {
  const absl::string_view type = documents_->RecordType(local_);
  return type.empty() && documents_->has_damaged_record_types() && IsRedacted()
             ? absl::string_view(kWithdrawnRecordType)
             : type;
}

bool DocumentCursor::IsRedacted() const {
  return (documents_->RecordType(local_) == kWithdrawnRecordType ||
          documents_->has_damaged_record_types()) &&
         archive_.IsRedacted(ordinal());
}

}  // namespace quire
