// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/fields/segment_field_reader.h"

#include <algorithm>
#include <compare>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "server/archive/format/archive_format.h"

namespace quire {

void FieldCache::Trim() {
  if (size_bytes_ > kSizeBytesMax) {
    pages_.clear();
    blocks_.clear();
    size_bytes_ = 0;
    ++generation_;
  }
}

SegmentFieldReader::SegmentFieldReader(const SegmentFields& fields,
                                       std::vector<size_t> columns,
                                       uint32_t key, FieldCache& cache,
                                       PartLoader load)
    : fields_(fields),
      columns_(std::move(columns)),
      key_(key),
      cache_(cache),
      load_(std::move(load)) {}

absl::StatusOr<const FieldPage*> SegmentFieldReader::PageOf(uint64_t ordinal) {
  const size_t index = fields_.PageOf(ordinal);
  const SegmentFields::Page& page = fields_.pages()[index];
  std::unique_ptr<const FieldPage>& cached =
      cache_.pages_[{key_, page.part.offset}];
  if (cached == nullptr) {
    QUIRE_ASSIGN_OR_RETURN(const std::optional<PartBytes> bytes,
                           load_(page.part));
    if (!bytes.has_value()) {
      return nullptr;
    }
    QUIRE_ASSIGN_OR_RETURN(FieldPage parsed,
                           FieldPage::Parse(bytes->bytes, fields_.columns(),
                                            fields_.StartOf(index), page.end,
                                            fields_.data_size_bytes()));
    cached = std::make_unique<const FieldPage>(std::move(parsed));
    cache_.size_bytes_ += cached->MemoryBytes();
  }
  return cached.get();
}

absl::StatusOr<const FieldBlock*> SegmentFieldReader::BlockOf(
    const FieldPage::Group& group, size_t column) {
  const FieldPage::Block& block = group.blocks[column];
  std::unique_ptr<const FieldCache::Block>& cached =
      cache_.blocks_[{key_, block.part->offset}];
  if (cached == nullptr) {
    QUIRE_ASSIGN_OR_RETURN(std::optional<PartBytes> bytes, load_(*block.part));
    if (!bytes.has_value()) {
      return nullptr;
    }
    const ByteView view = bytes->bytes;
    QUIRE_ASSIGN_OR_RETURN(
        FieldBlock parsed,
        FieldBlock::Parse(view, fields_.columns()[column].type, block.has_nulls,
                          static_cast<uint32_t>(group.end - group.first)));
    cached = std::make_unique<const FieldCache::Block>(
        FieldCache::Block{*std::move(bytes), std::move(parsed)});
    cache_.size_bytes_ += view.size() + cached->block.MemoryBytes();
  }
  return &cached->block;
}

absl::StatusOr<bool> SegmentFieldReader::Read(uint64_t ordinal,
                                              std::vector<FieldView>& values) {
  cache_.Trim();
  values.resize(columns_.size());
  if (fields_.columns().empty()) {
    std::ranges::fill(values, FieldView());
    return true;
  }
  if (group_ == nullptr || generation_ != cache_.generation_ ||
      ordinal < group_->first || ordinal >= group_->end) {
    QUIRE_ASSIGN_OR_RETURN(const bool is_complete, EnterGroup(ordinal));
    if (!is_complete) {
      return false;
    }
  }
  const auto index = static_cast<uint32_t>(ordinal - group_->first);
  for (size_t i = 0; i < blocks_.size(); ++i) {
    values[i] = blocks_[i] == nullptr ? FieldView() : (*blocks_[i])[index];
  }
  return true;
}

absl::StatusOr<bool> SegmentFieldReader::EnterGroup(uint64_t ordinal) {
  group_ = nullptr;
  generation_ = cache_.generation_;
  QUIRE_ASSIGN_OR_RETURN(const FieldPage* const page, PageOf(ordinal));
  if (page == nullptr) {
    return false;
  }
  const FieldPage::Group& group = page->GroupOf(ordinal);
  blocks_.assign(columns_.size(), nullptr);
  bool is_complete = true;
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i] != kNoColumn &&
        group.blocks[columns_[i]].part.has_value()) {
      QUIRE_ASSIGN_OR_RETURN(blocks_[i], BlockOf(group, columns_[i]));
      is_complete = is_complete && blocks_[i] != nullptr;
    }
  }
  group_ = is_complete ? &group : nullptr;
  return is_complete;
}

absl::StatusOr<bool> SegmentFieldReader::ReadGroup(uint64_t ordinal,
                                                   FieldGroup& group) {
  cache_.Trim();
  QUIRE_ASSIGN_OR_RETURN(const FieldPage* const page, PageOf(ordinal));
  if (page == nullptr) {
    return false;
  }
  const FieldPage::Group& found = page->GroupOf(ordinal);
  group.first_ordinal = found.first;
  group.end_ordinal = found.end;
  group.ranges.assign(columns_.size(), {.may_have_values = false});
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i] != kNoColumn) {
      const FieldPage::Block& block = found.blocks[columns_[i]];
      group.ranges[i] = {.least = ViewOf(block.least),
                         .greatest = ViewOf(block.greatest),
                         .may_have_values = block.part.has_value(),
                         .may_have_nulls = block.has_nulls};
    }
  }
  return true;
}

namespace {

std::vector<size_t> AllColumns(const SegmentFields& fields) {
  std::vector<size_t> columns(fields.columns().size());
  std::iota(columns.begin(), columns.end(), size_t{0});
  return columns;
}

}  // namespace

SegmentFieldValues::SegmentFieldValues(const SegmentFields& fields,
                                       PartLoader load)
    : reader_(fields, AllColumns(fields), 0, cache_, std::move(load)) {}

absl::StatusOr<absl::Span<const FieldValue>> SegmentFieldValues::Read(
    uint64_t ordinal) {
  QUIRE_RETURN_IF_ERROR(reader_.Read(ordinal, found_).status());
  values_.clear();
  for (const FieldView& value : found_) {
    values_.push_back(ValueOf(value));
  }
  return values_;
}

namespace {

// Bounds of one field in a group, and the field.
struct CheckedRange {
  const FieldColumn* column;
  FieldValue least;
  FieldValue greatest;

  absl::Status Check(uint64_t ordinal, const FieldView& value) const {
    const auto to_least = CompareFields(value, ViewOf(least));
    const auto to_greatest = CompareFields(value, ViewOf(greatest));
    const bool is_below = to_least == std::weak_ordering::less;
    if (!is_below && to_greatest != std::weak_ordering::greater) {
      return absl::OkStatus();
    }
    return Damaged(absl::StrCat(
        "field ", QuotedText(column->name), " of document ", ordinal, " is ",
        FormatField(value), ", expected ", is_below ? "at least " : "at most ",
        FormatField(ViewOf(is_below ? least : greatest)),
        ", the bound of its group"));
  }
};

std::vector<CheckedRange> RangesOf(const SegmentFields& fields,
                                   const FieldGroup& group) {
  std::vector<CheckedRange> ranges;
  for (size_t i = 0; i < group.ranges.size(); ++i) {
    ranges.push_back({.column = &fields.columns()[i],
                      .least = ValueOf(group.ranges[i].least),
                      .greatest = ValueOf(group.ranges[i].greatest)});
  }
  return ranges;
}

}  // namespace

absl::Status CheckSegmentFields(
    const SegmentFields& fields, uint64_t document_count, PartLoader load,
    absl::FunctionRef<bool(uint64_t ordinal)> is_removed) {
  if (fields.columns().empty()) {
    return absl::OkStatus();
  }
  FieldCache cache;
  SegmentFieldReader reader(fields, AllColumns(fields), 0, cache,
                            std::move(load));
  FieldGroup group;
  std::vector<CheckedRange> ranges;
  std::vector<FieldView> values;
  for (uint64_t i = 0; i < document_count; ++i) {
    if (i >= group.end_ordinal) {
      QUIRE_RETURN_IF_ERROR(reader.ReadGroup(i, group).status());
      ranges = RangesOf(fields, group);
    }
    QUIRE_RETURN_IF_ERROR(reader.Read(i, values).status());
    for (size_t column = 0; column < values.size(); ++column) {
      const bool has_value = TypeOf(values[column]) != FieldType::kNull;
      if (has_value && is_removed(i)) {
        return Damaged(absl::StrCat("document ", i, " was removed, and has ",
                                    "the field ",
                                    QuotedText(fields.columns()[column].name)));
      }
      QUIRE_RETURN_IF_ERROR(ranges[column].Check(i, values[column]));
    }
  }
  return absl::OkStatus();
}

}  // namespace quire
