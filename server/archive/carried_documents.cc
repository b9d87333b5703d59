// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/carried_documents.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

#include "codecs/base/document_item.h"
#include "codecs/base/positions.h"
#include "codecs/base/status_macros.h"
#include "codecs/filter/field_value.h"
#include "server/archive/captures/capture_cursor.h"
#include "server/archive/captures/captures_builder.h"
#include "server/archive/container/container_part.h"
#include "server/archive/deposits/deposit_directory.h"
#include "server/archive/fields/segment_field_reader.h"
#include "server/archive/format/archive_description.h"
#include "server/archive/format/archive_format.h"

namespace quire {
namespace {

// The fields of a segment's documents, in the columns of a new one.
class CarriedFields {
 public:
  CarriedFields(const SegmentReader& segment, FieldsBuilder& to)
      : segment_(segment),
        to_(to),
        reader_(segment.fields(), segment.part_loader()) {}

  absl::Status AddColumns() {
    for (const FieldColumn& column : segment_.fields().columns()) {
      QUIRE_ASSIGN_OR_RETURN(indexes_.emplace_back(), to_.AddColumn(column));
    }
    return absl::OkStatus();
  }

  // Valid until the next call.
  absl::StatusOr<absl::Span<const FieldValue>> Read(uint64_t ordinal) {
    QUIRE_ASSIGN_OR_RETURN(const absl::Span<const FieldValue> found,
                           reader_.Read(ordinal));
    values_.clear();
    for (size_t i = 0; i < found.size(); ++i) {
      values_.resize(std::max(values_.size(), indexes_[i] + 1));
      values_[indexes_[i]] = found[i];
    }
    return values_;
  }

 private:
  const SegmentReader& segment_;
  FieldsBuilder& to_;
  SegmentFieldValues reader_;
  // Index of each column of the segment in the new one.
  std::vector<size_t> indexes_;
  std::vector<FieldValue> values_;
};

// Adds the captures whose documents stay. Those of the segment begin at
// `first_ordinal` in the new one.
absl::Status CarryCaptures(const SegmentReader& segment, uint64_t first_ordinal,
                           std::span<const uint64_t> removed,
                           CapturesBuilder& to) {
  return VisitCaptures(segment.container().captures, segment.part_loader(),
                       [&](const SegmentCapture& capture) {
                         if (std::binary_search(removed.begin(), removed.end(),
                                                capture.ordinal)) {
                           return absl::OkStatus();
                         }
                         SegmentCapture added = capture;
                         added.ordinal += first_ordinal;
                         return to.Add(added);
                       });
}

// True if one of the documents has a byte of the text from `begin` to `end`.
bool HasText(const DocumentIndex& documents, std::span<const uint64_t> ordinals,
             uint64_t begin, uint64_t end) {
  const auto first =
      std::ranges::upper_bound(ordinals, begin, {}, [&](uint64_t ordinal) {
        const LogicalRange range = documents.Range(ordinal);
        return range.offset.value + range.size_bytes;
      });
  return first != ordinals.end() && documents.Range(*first).offset.value < end;
}

// Copies the deposited files, whose documents are added next.
absl::Status CarryDeposits(const SegmentReader& segment,
                           const LeftOut& left_out, ContainerBuilder& to) {
  const auto copy = [&](ContainerPart& part) -> absl::Status {
    QUIRE_ASSIGN_OR_RETURN(const std::vector<uint8_t> stored,
                           segment.ReadStoredPart(part));
    part = to.data().AppendStored(part, stored);
    return absl::OkStatus();
  };
  const std::vector<DepositPortion>& portions = segment.deposits().portions();
  for (size_t i = 0; i < portions.size(); ++i) {
    DepositPortion portion = portions[i];
    if (std::ranges::binary_search(left_out.deposits, i) ||
        HasText(segment.documents(), left_out.documents, portion.text_offset,
                portion.text_offset + portion.text_size_bytes)) {
      portion.state = DepositState::kWithdrawn;
      portion.file_size_bytes = 0;
      portion.digest = {};
      portion.pages.clear();
    }
    for (DepositPageEntry& page : portion.pages) {
      QUIRE_RETURN_IF_ERROR(copy(page.part));
      for (ContainerPart& literal : page.literals) {
        QUIRE_RETURN_IF_ERROR(copy(literal));
      }
    }
    to.deposits().AddStored(std::move(portion));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CarryDocuments(const SegmentReader& segment,
                            const LeftOut& left_out, DocumentIndexBuilder& to) {
  if (segment.container().has_unknown_parts) {
    return absl::FailedPreconditionError(
        absl::StrCat(segment.file(),
                     ": has a container with parts that this program does not "
                     "know and would leave out: use a newer one"));
  }
  CarriedFields fields(segment, to.container().fields());
  QUIRE_RETURN_IF_ERROR(fields.AddColumns());
  const uint64_t first_ordinal = to.count();
  QUIRE_RETURN_IF_ERROR(CarryDeposits(segment, left_out, to.container()));
  const DocumentIndex& documents = segment.documents();
  const std::span<const uint64_t> removed = left_out.documents;
  auto next = removed.begin();
  for (uint64_t ordinal = 0; ordinal < documents.count(); ++ordinal) {
    const Document document = documents.Describe(ordinal);
    if (next != removed.end() && *next == ordinal) {
      ++next;
      QUIRE_RETURN_IF_ERROR(to.Add({.size_bytes = document.range.size_bytes,
                                    .record_type = kWithdrawnRecordType}));
      continue;
    }
    const std::string id = documents.Id(ordinal);
    NewDocument added = {.id = id,
                         .size_bytes = document.range.size_bytes,
                         .capture_time_ms = document.capture_time_ms,
                         .record_type = document.record_type,
                         .media_type = document.media_type};
    QUIRE_ASSIGN_OR_RETURN(added.fields, fields.Read(ordinal));
    QUIRE_RETURN_IF_ERROR(to.Add(added));
  }
  return InFile(segment.file(), CarryCaptures(segment, first_ordinal, removed,
                                              to.container().captures()));
}

}  // namespace quire
