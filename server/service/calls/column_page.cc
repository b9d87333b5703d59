// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/calls/column_page.h"

#include <algorithm>
#include <string>

#include "codecs/base/status_macros.h"
#include "codecs/filter/filter.h"
#include "server/archive/archive.h"
#include "server/archive/format/archive_format.h"
#include "server/service/calls/resume_token.h"
#include "server/service/read/read_planner.h"

namespace quire {
namespace {

void AddAttribute(absl::string_view text, ValueColumnBuilder& column) {
  if (IsPlainText(text)) {
    column.AddText(text);
  } else {
    column.AddNull();
  }
}

}  // namespace

ColumnPage::Columns::Columns(const ServedContents& contents,
                             const v1::ListDocumentsRequest& request)
    : ordinals(FieldType::kInteger),
      ids(FieldType::kString),
      offsets(FieldType::kInteger),
      sizes_bytes(FieldType::kInteger),
      capture_times_ms(FieldType::kInteger),
      media_types(FieldType::kString),
      record_types(FieldType::kString) {
  const std::vector<FieldColumn>& known = contents.view.archive->fields();
  for (const std::string& name : request.fields()) {
    fields.emplace_back(
        std::ranges::find(known, name, &FieldColumn::name)->type);
  }
}

ColumnPage::ColumnPage(const ServedContents& contents,
                       const v1::ListDocumentsRequest& request,
                       uint32_t page_size)
    : contents_(contents),
      request_(request),
      page_size_(page_size),
      cursor_(*contents.view.archive) {}

absl::Status ColumnPage::Select(ExcludedUntil excluded_until) {
  ordinals_.clear();
  done_count_ = 0;
  last_ordinal_.reset();
  columns_.emplace(contents_, request_);
  uint64_t removed_count = 0;
  const auto add = [&](DocumentOrdinal ordinal) {
    cursor_.MoveTo(ordinal);
    if (cursor_.IsRedacted()) {
      last_ordinal_ = ++removed_count == kPassedMax
                          ? std::optional(ordinal.value)
                          : std::nullopt;
      return !last_ordinal_.has_value();
    }
    if (ordinals_.size() == page_size_) {
      last_ordinal_ = ordinals_.back();
      return false;
    }
    ordinals_.push_back(ordinal.value);
    return true;
  };
  return SelectByOrdinal(contents_, request_, excluded_until, add,
                         last_ordinal_);
}

FieldView ColumnPage::Attribute(absl::string_view name) {
  const DocumentOrdinal ordinal = OrdinalAt(done_count_);
  cursor_.MoveTo(ordinal);
  DocumentAttributeValues values = {.ordinal = ordinal.value,
                                    .size_bytes = cursor_.Range().size_bytes,
                                    .time_ms = cursor_.CaptureTimeMs()};
  if (name == "id") {
    values.id = cursor_.Id();
  }
  if (IsPlainText(cursor_.MediaType())) {
    values.type = cursor_.MediaType();
  }
  if (IsPlainText(cursor_.RecordType())) {
    values.record_type = cursor_.RecordType();
  }
  return AttributeOf(values, name);
}

void ColumnPage::Take(absl::Span<const FieldView> fields) {
  const v1::ColumnSelection& wanted = request_.columns();
  const DocumentOrdinal ordinal = OrdinalAt(done_count_);
  ++done_count_;
  ++columns_->document_count;
  columns_->ordinals.AddNumber(ordinal.value);
  cursor_.MoveTo(ordinal);
  if (wanted.ids()) {
    columns_->ids.AddText(cursor_.Id());
  }
  if (wanted.ranges()) {
    const LogicalRange range = cursor_.Range();
    columns_->offsets.AddNumber(range.offset.value);
    columns_->sizes_bytes.AddNumber(range.size_bytes);
  }
  if (wanted.capture_times()) {
    const std::optional<int64_t> time_ms = cursor_.CaptureTimeMs();
    if (time_ms.has_value()) {
      columns_->capture_times_ms.AddNumber(static_cast<uint64_t>(*time_ms));
    } else {
      columns_->capture_times_ms.AddNull();
    }
  }
  if (wanted.media_types()) {
    AddAttribute(cursor_.MediaType(), columns_->media_types);
  }
  if (wanted.record_types()) {
    AddAttribute(cursor_.RecordType(), columns_->record_types);
  }
  for (size_t i = 0; i < fields.size(); ++i) {
    columns_->fields[i].Add(fields[i]);
  }
}

uint64_t ColumnPage::taken_bytes() const {
  uint64_t size_bytes = 0;
  for (const ValueColumnBuilder* const column :
       {&columns_->ordinals, &columns_->ids, &columns_->offsets,
        &columns_->sizes_bytes, &columns_->capture_times_ms,
        &columns_->media_types, &columns_->record_types}) {
    size_bytes += column->size_bytes();
  }
  for (const ValueColumnBuilder& column : columns_->fields) {
    size_bytes += column.size_bytes();
  }
  return size_bytes;
}

void ColumnPage::Truncate() {
  if (done_count_ < ordinals_.size()) {
    last_ordinal_ = ordinals_[done_count_ - 1];
    ordinals_.resize(done_count_);
  }
}

v1::ListDocumentsResponse ColumnPage::Finish(bool is_filtered) {
  v1::ListDocumentsResponse response;
  v1::DocumentColumns& columns = *response.mutable_columns();
  columns.set_document_count(static_cast<uint32_t>(columns_->document_count));
  const auto finish = [](ValueColumnBuilder& values, auto make) {
    if (values.has_values()) {
      values.Finish(*make());
    }
  };
  finish(columns_->ordinals, [&] { return columns.mutable_ordinals(); });
  finish(columns_->ids, [&] { return columns.mutable_ids(); });
  finish(columns_->offsets, [&] { return columns.mutable_offsets(); });
  finish(columns_->sizes_bytes, [&] { return columns.mutable_sizes_bytes(); });
  finish(columns_->capture_times_ms,
         [&] { return columns.mutable_capture_times_ms(); });
  finish(columns_->media_types, [&] { return columns.mutable_media_types(); });
  finish(columns_->record_types,
         [&] { return columns.mutable_record_types(); });
  for (ValueColumnBuilder& values : columns_->fields) {
    values.Finish(*columns.add_fields());
  }
  if (last_ordinal_.has_value()) {
    response.set_next_page_token(MakePageToken(
        contents_.view, request_, {.id = {}, .ordinal = *last_ordinal_}));
  }
  response.set_is_filtered(is_filtered);
  return response;
}

}  // namespace quire
