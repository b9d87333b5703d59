// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/build_fields.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "server/archive/fields/fields_builder.h"

namespace quire {
namespace {

// Floats hold integers up to this exactly.
constexpr int64_t kExactIntegerMax = int64_t{1} << 53;

constexpr FieldType kTypes[] = {FieldType::kString, FieldType::kInteger,
                                FieldType::kFloat, FieldType::kBoolean,
                                FieldType::kTime};

uint32_t BitOf(FieldType type) {
  return uint32_t{1} << static_cast<uint32_t>(type);
}

bool IsExact(int64_t integer) {
  return integer >= -kExactIntegerMax && integer <= kExactIntegerMax;
}

// A number as JSON writes it; null if it has none of the types.
FieldValue NumberOf(absl::string_view text) {
  const bool is_integer =
      !text.empty() && text.find_first_not_of("-0123456789") == text.npos;
  int64_t integer = 0;
  if (is_integer) {
    // A longer integer would lose digits.
    return absl::SimpleAtoi(text, &integer) && text != "-0"
               ? FieldValue(integer)
               : FieldValue();
  }
  double number = 0;
  return text.find_first_not_of("+-.0123456789eE") == text.npos &&
                 absl::SimpleAtod(text, &number) && std::isfinite(number)
             ? FieldValue(number)
             : FieldValue();
}

// Null unless all digits of the fraction are kept.
FieldValue TimeOf(absl::string_view text) {
  const std::optional<FieldTime> time = ParseFieldTime(text);
  if (!time.has_value()) {
    return {};
  }
  const size_t point = text.find('.');
  if (point != text.npos) {
    const size_t end = text.find_first_not_of("0123456789", point + 1);
    for (size_t i = point + 7; i < std::min(end, text.size()); ++i) {
      if (text[i] != '0') {
        return {};
      }
    }
  }
  return *time;
}

FieldValue BooleanOf(absl::string_view text) {
  return text == "true" || text == "false" ? FieldValue(text == "true")
                                           : FieldValue();
}

bool IsNull(const FieldValue& value) {
  return std::holds_alternative<std::monostate>(value);
}

// The value by itself: null only for null.
FieldValue Natural(const SourceValue& value) {
  FieldValue found;
  switch (value.form) {
    case SourceValue::Form::kNull:
      return {};
    case SourceValue::Form::kTyped:
      return value.value;
    case SourceValue::Form::kNested:
      return value.text;
    case SourceValue::Form::kNumber:
      found = NumberOf(value.text);
      break;
    case SourceValue::Form::kBoolean:
      found = BooleanOf(value.text);
      break;
    case SourceValue::Form::kString:
      found = TimeOf(value.text);
      break;
    case SourceValue::Form::kText:
      found = NumberOf(value.text);
      found = IsNull(found) ? BooleanOf(value.text) : std::move(found);
      found = IsNull(found) ? TimeOf(value.text) : std::move(found);
      break;
  }
  return IsNull(found) ? FieldValue(value.text) : found;
}

// The value as one of `type`; unset if it is not.
std::optional<FieldValue> As(const SourceValue& value, FieldType type) {
  FieldValue natural = Natural(value);
  if (IsNull(natural) || TypeOf(ViewOf(natural)) == type) {
    return natural;
  }
  if (type == FieldType::kString && value.form != SourceValue::Form::kTyped) {
    return FieldValue(value.text);
  }
  const auto* const integer = std::get_if<int64_t>(&natural);
  if (type == FieldType::kFloat && integer != nullptr && IsExact(*integer)) {
    return FieldValue(static_cast<double>(*integer));
  }
  return std::nullopt;
}

}  // namespace

BuildFields::BuildFields(std::span<const std::unique_ptr<Source>> sources)
    : sources_(sources) {
  for (const std::unique_ptr<Source>& source : sources) {
    std::vector<size_t>& indexes = indexes_.emplace_back();
    for (const SourceField& added : source->fields()) {
      const auto found = std::ranges::find(fields_, added.name, &Field::name);
      indexes.push_back(static_cast<size_t>(found - fields_.begin()));
      if (found == fields_.end()) {
        fields_.push_back({.name = added.name});
      }
      if (status_.ok() && added.type != FieldType::kNull) {
        status_ = Fix(fields_[indexes.back()], added.type, source->name());
      }
    }
  }
  if (status_.ok() && fields_.size() > kFieldCountMax) {
    status_ = absl::InvalidArgumentError(
        absl::StrCat("the inputs have ", fields_.size(),
                     " fields together, expected at most ", kFieldCountMax));
  }
}

absl::Status BuildFields::Fix(Field& field, FieldType type,
                              const std::string& archive) {
  QUIRE_RETURN_IF_ERROR(field.type == FieldType::kNull
                            ? absl::OkStatus()
                            : CheckSameType({field.name, field.type},
                                            {field.name, type}, field.archive,
                                            archive));
  field.type = type;
  field.archive = archive;
  return absl::OkStatus();
}

absl::Status BuildFields::SetKnown(const std::vector<FieldColumn>& columns,
                                   const std::string& archive) {
  QUIRE_RETURN_IF_ERROR(status_);
  size_t count = fields_.size() + columns.size();
  for (const FieldColumn& column : columns) {
    const auto found = std::ranges::find(fields_, column.name, &Field::name);
    if (found != fields_.end()) {
      QUIRE_RETURN_IF_ERROR(Fix(*found, column.type, archive));
      --count;
    }
  }
  return count <= kFieldCountMax
             ? absl::OkStatus()
             : absl::InvalidArgumentError(absl::StrCat(
                   archive, ": would have ", count,
                   " fields with those of the inputs, expected at most ",
                   kFieldCountMax));
}

absl::Status BuildFields::Count(size_t source_index, const SourceReader& reader,
                                const SourceDocument& document) {
  QUIRE_RETURN_IF_ERROR(status_);
  const std::vector<size_t>& indexes = indexes_[source_index];
  for (size_t i = 0; i < document.fields.size(); ++i) {
    Field& field = fields_[indexes[i]];
    const SourceValue& value = document.fields[i];
    const FieldValue natural = Natural(value);
    if (IsNull(natural)) {
      continue;
    }
    const FieldType type = TypeOf(ViewOf(natural));
    const auto problem = [&](absl::string_view text) {
      return absl::FailedPreconditionError(
          absl::StrCat(sources_[source_index]->name(), ": ", reader.Place(),
                       ": field ", QuotedText(field.name), " ", text));
    };
    if (value.text.size() > kFieldValueSizeBytesMax) {
      return problem(absl::StrCat(
          "has ", FormatCount(value.text.size()),
          " bytes, and values have at most ",
          FormatCount(kFieldValueSizeBytesMax),
          "; store it as the text, by --text-field, or leave the field out"));
    }
    if (field.type != FieldType::kNull && !As(value, field.type).has_value()) {
      return problem(absl::StrCat(
          "is ", QuotedText(value.text, 40), ", of type ", FieldTypeName(type),
          ", and of type ", FieldTypeName(field.type), " in ", field.archive,
          "; give it another name, as in --field NAME=PATH"));
    }
    field.types |= BitOf(type);
    const auto* const integer = std::get_if<int64_t>(&natural);
    field.has_large_integers |= integer != nullptr && !IsExact(*integer);
  }
  return absl::OkStatus();
}

FieldType BuildFields::TypeOfAll(const Field& field) {
  const uint32_t numbers =
      BitOf(FieldType::kInteger) | BitOf(FieldType::kFloat);
  if (field.types == numbers && !field.has_large_integers) {
    return FieldType::kFloat;
  }
  for (const FieldType type : kTypes) {
    if (field.types == BitOf(type)) {
      return type;
    }
  }
  return FieldType::kString;
}

std::string BuildFields::DescribeTypes(const Field& field) {
  std::vector<absl::string_view> names;
  for (const FieldType type : kTypes) {
    if ((field.types & BitOf(type)) != 0) {
      names.push_back(FieldTypeName(type));
    }
  }
  return absl::StrJoin(names, ", ");
}

absl::Status BuildFields::EndCount() {
  QUIRE_RETURN_IF_ERROR(status_);
  columns_.clear();
  for (const Field& field : fields_) {
    FieldType type = field.type;
    if (type == FieldType::kNull) {
      if (field.types == 0) {
        return absl::InvalidArgumentError(absl::StrCat(
            "no record has a value for the field ", QuotedText(field.name),
            "; give the path of its member, as in --field NAME=PATH, or leave "
            "it out"));
      }
      type = TypeOfAll(field);
      if (type == FieldType::kString && field.types != BitOf(type)) {
        notes_.push_back(absl::StrCat(
            "field ", QuotedText(field.name), " has values of several types (",
            DescribeTypes(field), "), and all are stored as strings"));
      }
    } else if (type == FieldType::kString &&
               (field.types & ~BitOf(type)) != 0) {
      notes_.push_back(
          absl::StrCat("field ", QuotedText(field.name), " is a string in ",
                       field.archive, " and has values of other types (",
                       DescribeTypes(field), "), which are stored as strings"));
    }
    columns_.push_back({field.name, type});
  }
  return absl::OkStatus();
}

absl::Status BuildFields::Convert(size_t source_index,
                                  const SourceReader& reader,
                                  const SourceDocument& document,
                                  std::vector<FieldValue>& values) const {
  values.assign(columns_.size(), FieldValue());
  const std::vector<size_t>& indexes = indexes_[source_index];
  for (size_t i = 0; i < document.fields.size(); ++i) {
    std::optional<FieldValue> value =
        As(document.fields[i], columns_[indexes[i]].type);
    if (!value.has_value() ||
        document.fields[i].text.size() > kFieldValueSizeBytesMax) {
      return absl::FailedPreconditionError(absl::StrCat(
          sources_[source_index]->name(), ": ", reader.Place(), ": field ",
          QuotedText(columns_[indexes[i]].name),
          " has another type than before: the input changed while it was "
          "read; try again"));
    }
    values[indexes[i]] = *std::move(value);
  }
  return absl::OkStatus();
}

}  // namespace quire
