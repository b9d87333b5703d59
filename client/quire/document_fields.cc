// SPDX-License-Identifier: Apache-2.0
#include "client/quire/document_fields.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace quire {
namespace {

DocumentAttributeValues AttributesOf(const v1::Document& document) {
  DocumentAttributeValues values = {
      .id = document.id(),
      .ordinal = document.ordinal(),
      .size_bytes = document.range().size_bytes()};
  if (document.has_capture_time_ms()) {
    values.time_ms = document.capture_time_ms();
  }
  if (document.has_media_type()) {
    values.type = document.media_type();
  }
  if (document.has_record_type()) {
    values.record_type = document.record_type();
  }
  return values;
}

}  // namespace

FieldView ViewOf(const v1::FieldValue& value) {
  switch (value.value_case()) {
    case v1::FieldValue::kStringValue:
      return absl::string_view(value.string_value());
    case v1::FieldValue::kIntegerValue:
      return static_cast<int64_t>(value.integer_value());
    case v1::FieldValue::kFloatValue:
      return value.float_value();
    case v1::FieldValue::kBooleanValue:
      return value.boolean_value();
    case v1::FieldValue::kTimeUs:
      return FieldTime{value.time_us()};
    case v1::FieldValue::VALUE_NOT_SET:
      break;
  }
  return {};
}

std::vector<FieldColumn> ColumnsOf(const v1::ArchiveDescription& archive) {
  std::vector<FieldColumn> columns;
  for (const v1::FieldDescription& field : archive.fields()) {
    if (field.type() >= v1::FIELD_TYPE_STRING &&
        field.type() <= v1::FIELD_TYPE_TIME) {
      columns.push_back({field.name(), static_cast<FieldType>(field.type())});
    }
  }
  return columns;
}

DocumentMatcher::DocumentMatcher(Filter filter,
                                 absl::Span<const std::string> fields)
    : filter_(std::move(filter)) {
  for (const std::string& name : filter_.names()) {
    const auto found = std::find(fields.begin(), fields.end(), name);
    indexes_.push_back(found == fields.end()
                           ? SIZE_MAX
                           : static_cast<size_t>(found - fields.begin()));
  }
}

bool DocumentMatcher::Matches(const v1::Document& document) const {
  const DocumentAttributeValues attributes = AttributesOf(document);
  std::vector<FieldView> values;
  values.reserve(indexes_.size());
  for (size_t i = 0; i < indexes_.size(); ++i) {
    if (indexes_[i] == SIZE_MAX) {
      values.push_back(AttributeOf(attributes, filter_.names()[i]));
    } else if (indexes_[i] < static_cast<size_t>(document.fields_size())) {
      values.push_back(ViewOf(document.fields(static_cast<int>(indexes_[i]))));
    } else {
      values.emplace_back();
    }
  }
  return filter_.Matches(values);
}

}  // namespace quire
