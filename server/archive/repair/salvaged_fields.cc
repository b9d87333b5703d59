// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/repair/salvaged_fields.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "codecs/base/printable_text.h"

namespace quire {

SalvagedFields::SalvagedFields(const SegmentReader& segment,
                               const std::vector<size_t>& columns,
                               uint64_t first_ordinal, OnDamage on_damage)
    : segment_(segment),
      first_ordinal_(first_ordinal),
      on_damage_(std::move(on_damage)) {
  for (const size_t column : columns) {
    columns_.push_back({.description = &segment.fields().columns()[column],
                        .reader = std::make_unique<SegmentFieldReader>(
                            segment.fields(), std::vector<size_t>{column},
                            /*key=*/0, cache_, segment.part_loader())});
  }
}

absl::Span<const FieldValue> SalvagedFields::Read(uint64_t ordinal,
                                                  uint64_t& lost_count) {
  lost_count = 0;
  values_.assign(columns_.size(), FieldValue());
  if (ordinal >= group_end_ && !columns_.empty()) {
    BeginGroup(ordinal);
  }
  for (size_t i = 0; i < columns_.size(); ++i) {
    Column& column = columns_[i];
    if (!column.is_lost) {
      const absl::Status status = column.reader->Read(ordinal, found_).status();
      if (status.ok()) {
        values_[i] = ValueOf(found_[0]);
        continue;
      }
      column.is_lost = true;
      Damage(ordinal,
             absl::StrCat("field ", QuotedText(column.description->name)),
             status);
    }
    ++lost_count;
  }
  return values_;
}

void SalvagedFields::BeginGroup(uint64_t ordinal) {
  FieldGroup group;
  const absl::Status status =
      columns_[0].reader->ReadGroup(ordinal, group).status();
  for (Column& column : columns_) {
    column.is_lost = !status.ok();
  }
  if (status.ok()) {
    group_end_ = group.end_ordinal;
    return;
  }
  const SegmentFields& fields = segment_.fields();
  group_end_ = fields.pages()[fields.PageOf(ordinal)].end;
  Damage(ordinal, "all fields", status);
}

void SalvagedFields::Damage(uint64_t ordinal, absl::string_view subject,
                            const absl::Status& reason) {
  absl::string_view message = reason.message();
  absl::ConsumePrefix(&message, absl::StrCat(segment_.file(), ": "));
  on_damage_(absl::DataLossError(absl::StrCat(
      segment_.file(), ": ", subject, " of documents ",
      first_ordinal_ + ordinal, " to ", first_ordinal_ + group_end_ - 1,
      " cannot be read, and is saved as null (", message, ")")));
}

}  // namespace quire
