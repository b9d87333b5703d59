// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/fields/segment_field_reader.h"

#include <numeric>
#include <utility>

#include "codecs/base/status_macros.h"

namespace quire {

void FieldCache::Trim() {
  if (size_bytes_ > kSizeBytesMax) {
    pages_.clear();
    blocks_.clear();
    size_bytes_ = 0;
  }
}

SegmentFieldReader::SegmentFieldReader(const SegmentFields& fields,
                                       std::vector<size_t> columns,
                                       uint32_t key, FieldCache& cache,
                                       Load load)
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
    QUIRE_ASSIGN_OR_RETURN(const std::optional<FieldBytes> bytes,
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
    QUIRE_ASSIGN_OR_RETURN(std::optional<FieldBytes> bytes, load_(*block.part));
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
  values.assign(columns_.size(), FieldView());
  if (fields_.columns().empty()) {
    return true;
  }
  QUIRE_ASSIGN_OR_RETURN(const FieldPage* const page, PageOf(ordinal));
  if (page == nullptr) {
    return false;
  }
  const FieldPage::Group& group = page->GroupOf(ordinal);
  bool is_complete = true;
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i] == kNoColumn ||
        !group.blocks[columns_[i]].part.has_value()) {
      continue;
    }
    QUIRE_ASSIGN_OR_RETURN(const FieldBlock* const block,
                           BlockOf(group, columns_[i]));
    if (block == nullptr) {
      is_complete = false;
    } else {
      values[i] = (*block)[static_cast<uint32_t>(ordinal - group.first)];
    }
  }
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
                                       SegmentFieldReader::Load load)
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

}  // namespace quire
