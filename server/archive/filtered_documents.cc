// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/filtered_documents.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "server/archive/capture_scan.h"
#include "server/archive/capture_values.h"
#include "server/archive/fields/field_directory.h"
#include "server/archive/fields/segment_field_reader.h"
#include "server/archive/format/archive_format.h"
#include "server/archive/segment_reader.h"

namespace quire {
namespace {

// REQUIRES: the name is that of no attribute of documents.
bool HasField(const Archive& archive, absl::string_view name) {
  return std::ranges::find(archive.fields(), name, &FieldColumn::name) !=
         archive.fields().end();
}

// True if the filter names an attribute of captures that no field hides.
bool NamesCaptures(const Archive& archive, const Filter& filter) {
  return !filter.CaptureNames(archive.fields()).empty();
}

// Evaluates a filter that fits the archive.
class FilterWalk {
 public:
  FilterWalk(const Archive& archive, const Filter& filter,
             const ArchivePartLoader& load,
             const std::function<absl::Status()>& check)
      : archive_(archive),
        filter_(filter),
        reader_(archive, ColumnsOf(archive, filter), load),
        captures_(archive, load, check),
        needs_captures_(NamesCaptures(archive, filter)) {
    size_t column = 0;
    for (const std::string& name : filter.names()) {
      const bool is_field = HasField(archive, name);
      columns_.push_back(is_field ? std::optional(column++) : std::nullopt);
      needs_description_ =
          needs_description_ || (DocumentAttributeType(name).has_value() &&
                                 name != "ordinal" && name != "size");
    }
    column_count_ = column;
  }

  // Returns the end of a group of documents that begins at `ordinal`, and sets
  // `could_match`.
  absl::StatusOr<uint64_t> FindGroup(uint64_t ordinal, bool& could_match) {
    could_match = true;
    if (column_count_ == 0) {
      return std::min(ordinal + kFieldGroupSizeMax,
                      archive_.info().document_count);
    }
    QUIRE_RETURN_IF_ERROR(
        reader_.ReadGroup(DocumentOrdinal{ordinal}, group_).status());
    std::vector<FieldRange> ranges;
    for (const std::optional<size_t>& column : columns_) {
      ranges.push_back(column.has_value() ? group_.ranges[*column]
                                          : FieldRange());
    }
    could_match = filter_.CouldMatch(ranges);
    return group_.end_ordinal;
  }

  bool needs_captures() const { return needs_captures_; }

  absl::StatusOr<bool> Matches(DocumentOrdinal ordinal) {
    if (archive_.IsRedacted(ordinal)) {
      return false;
    }
    if (column_count_ > 0) {
      QUIRE_RETURN_IF_ERROR(reader_.Read(ordinal, fields_).status());
    }
    QUIRE_RETURN_IF_ERROR(Describe(ordinal));
    if (needs_captures_) {
      QUIRE_RETURN_IF_ERROR(captures_.Find(ordinal, status_, digest_));
    }
    row_.clear();
    for (size_t i = 0; i < columns_.size(); ++i) {
      row_.push_back(columns_[i].has_value() ? fields_[*columns_[i]]
                                             : Attribute(filter_.names()[i]));
    }
    return filter_.Matches(row_);
  }

 private:
  static std::vector<uint32_t> ColumnsOf(const Archive& archive,
                                         const Filter& filter) {
    std::vector<uint32_t> columns;
    for (const std::string& name : filter.names()) {
      if (HasField(archive, name)) {
        const auto found =
            std::ranges::find(archive.fields(), name, &FieldColumn::name);
        columns.push_back(
            static_cast<uint32_t>(found - archive.fields().begin()));
      }
    }
    return columns;
  }

  // Value of an attribute of documents or captures.
  FieldView Attribute(const std::string& name) const {
    if (name == "status") {
      return status_ == 0 ? FieldView()
                          : FieldView(static_cast<int64_t>(status_));
    }
    if (name == "digest") {
      return digest_.empty() ? FieldView()
                             : FieldView(absl::string_view(digest_));
    }
    return AttributeOf(attributes_, name);
  }

  // Sets the attributes that the filter names.
  absl::Status Describe(DocumentOrdinal ordinal) {
    attributes_ = {.ordinal = ordinal.value};
    if (!needs_description_) {
      QUIRE_ASSIGN_OR_RETURN(const LogicalRange range,
                             archive_.GetDocumentRange(ordinal));
      attributes_.size_bytes = range.size_bytes;
      return absl::OkStatus();
    }
    QUIRE_ASSIGN_OR_RETURN(document_, archive_.GetDocument(ordinal));
    attributes_.id = document_.id;
    attributes_.size_bytes = document_.range.size_bytes;
    attributes_.time_ms = document_.capture_time_ms;
    if (IsPlainText(document_.media_type)) {
      attributes_.type = document_.media_type;
    }
    if (IsPlainText(document_.record_type)) {
      attributes_.record_type = document_.record_type;
    }
    return absl::OkStatus();
  }

  const Archive& archive_;
  const Filter& filter_;
  DocumentFieldReader reader_;
  CaptureValues captures_;
  const bool needs_captures_;
  // Of the document, if they are needed.
  uint32_t status_ = 0;
  std::string digest_;
  // For each name of the filter: its index in `fields_`; unset: an attribute.
  std::vector<std::optional<size_t>> columns_;
  size_t column_count_ = 0;
  // An attribute is named that the range of a document does not have.
  bool needs_description_ = false;
  FieldGroup group_;
  std::vector<FieldView> fields_;
  // Borrows from `document_`.
  DocumentAttributeValues attributes_;
  Document document_;
  std::vector<FieldView> row_;
};

absl::Status Unreadable(const Archive& archive, bool needs_captures,
                        uint64_t ordinal, const absl::Status& status) {
  return absl::Status(
      status.code(),
      absl::StrCat(
          archive.SegmentPath(archive.SegmentAt({ordinal}).segment_index),
          needs_captures ? ": the fields or captures" : ": the fields",
          " of document ", ordinal, " cannot be read: ", status.message()));
}

}  // namespace

absl::Status CheckFilter(const Archive& archive, const Filter& filter) {
  const bool names_captures = NamesCaptures(archive, filter);
  const CaptureIndexing indexing =
      names_captures ? IndexingOf(archive, archive.info().document_count)
                     : CaptureIndexing();
  if (indexing.capture_count == 0) {
    return filter.Check(archive.fields());
  }
  if (indexing.unindexed_document_count > 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "digest and status are not known of ",
        indexing.unindexed_document_count,
        " documents: the segments that have them were written without an index "
        "of captures; build the archive again"));
  }
  return filter.Check(WithCaptureAttributes(archive.fields()));
}

uint64_t EstimateVisitMatchesBytes(const Archive& archive,
                                   const Filter& filter) {
  // Parts are compressed, at most by about this factor.
  constexpr uint64_t kExpansion = 64;
  constexpr uint64_t kBytesMax = 2 * FieldCache::kSizeBytesMax;
  uint64_t stored_bytes = 0;
  for (uint32_t i = 0; i < archive.info().segment_count; ++i) {
    stored_bytes += archive.ReaderOf(i).fields().data_size_bytes();
  }
  return std::min(kBytesMax, kExpansion * std::min(stored_bytes, kBytesMax)) +
         (NamesCaptures(archive, filter) ? CaptureValues::EstimateBytes(archive)
                                         : 0);
}

absl::Status VisitMatches(const Archive& archive, const Filter& filter,
                          const ArchivePartLoader& load,
                          const std::function<absl::Status()>& check,
                          absl::FunctionRef<void(DocumentOrdinal)> visit) {
  QUIRE_RETURN_IF_ERROR(CheckFilter(archive, filter));
  FilterWalk walk(archive, filter, load, check);
  const uint64_t count = archive.info().document_count;
  for (uint64_t ordinal = 0; ordinal < count;) {
    if (check) {
      QUIRE_RETURN_IF_ERROR(check());
    }
    bool could_match = true;
    const absl::StatusOr<uint64_t> end = walk.FindGroup(ordinal, could_match);
    if (!end.ok()) {
      return Unreadable(archive, walk.needs_captures(), ordinal, end.status());
    }
    for (; could_match && ordinal < *end; ++ordinal) {
      const absl::StatusOr<bool> is_match =
          walk.Matches(DocumentOrdinal{ordinal});
      if (!is_match.ok()) {
        return Unreadable(archive, walk.needs_captures(), ordinal,
                          is_match.status());
      }
      if (*is_match) {
        visit(DocumentOrdinal{ordinal});
      }
    }
    ordinal = *end;
  }
  return absl::OkStatus();
}

}  // namespace quire
