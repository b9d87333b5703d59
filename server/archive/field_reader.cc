// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/field_reader.h"

#include <utility>

#include "codecs/base/status_macros.h"
#include "server/archive/segment_reader.h"

namespace quire {
namespace {

std::vector<size_t> ColumnsIn(const SegmentFields& fields,
                              const Archive& archive,
                              const std::vector<uint32_t>& columns) {
  std::vector<size_t> found;
  for (const uint32_t column : columns) {
    const FieldColumn& wanted = archive.fields()[column];
    const std::optional<size_t> index = fields.Find(wanted.name);
    // A field of another type is one of the archive's damages.
    found.push_back(index.has_value() &&
                            fields.columns()[*index].type == wanted.type
                        ? *index
                        : SegmentFieldReader::kNoColumn);
  }
  return found;
}

}  // namespace

DocumentFieldReader::DocumentFieldReader(const Archive& archive,
                                         std::vector<uint32_t> columns,
                                         ArchivePartLoader load)
    : archive_(archive), columns_(std::move(columns)), load_(std::move(load)) {}

const DocumentFieldReader::Segment& DocumentFieldReader::SegmentOf(
    DocumentOrdinal ordinal) {
  if (last_ != nullptr && ordinal.value >= last_->documents.first_ordinal &&
      ordinal.value - last_->documents.first_ordinal <
          last_->documents.document_count) {
    return *last_;
  }
  const Archive::DocumentsOfSegment found = archive_.SegmentAt(ordinal);
  std::unique_ptr<const Segment>& segment = segments_[found.segment_index];
  if (segment == nullptr) {
    const SegmentFields& fields =
        archive_.ReaderOf(found.segment_index).fields();
    segment = std::make_unique<const Segment>(Segment{
        .documents = found,
        .reader = std::make_unique<SegmentFieldReader>(
            fields, ColumnsIn(fields, archive_, columns_), found.segment_index,
            cache_, SegmentPartLoader(archive_, found.segment_index, load_))});
  }
  last_ = segment.get();
  return *last_;
}

absl::StatusOr<bool> DocumentFieldReader::Read(DocumentOrdinal ordinal,
                                               std::vector<FieldView>& values) {
  const Segment& segment = SegmentOf(ordinal);
  return segment.reader->Read(ordinal.value - segment.documents.first_ordinal,
                              values);
}

absl::StatusOr<bool> DocumentFieldReader::ReadGroup(DocumentOrdinal ordinal,
                                                    FieldGroup& group) {
  const Segment& segment = SegmentOf(ordinal);
  const uint64_t first = segment.documents.first_ordinal;
  if (archive_.ReaderOf(segment.documents.segment_index)
          .fields()
          .columns()
          .empty()) {
    group.first_ordinal = first;
    group.end_ordinal = first + segment.documents.document_count;
    group.ranges.assign(columns_.size(), {.may_have_values = false});
    return true;
  }
  QUIRE_ASSIGN_OR_RETURN(
      const bool is_complete,
      segment.reader->ReadGroup(ordinal.value - first, group));
  group.first_ordinal += first;
  group.end_ordinal += first;
  return is_complete;
}

}  // namespace quire
