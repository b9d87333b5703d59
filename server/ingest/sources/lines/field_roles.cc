// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/lines/field_roles.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/printable_text.h"
#include "codecs/filter/field_value.h"
#include "server/archive/format/archive_format.h"
#include "server/ingest/sources/lines/json_fields.h"

namespace quire {
namespace {

// Columns that a message names.
constexpr size_t kNamedColumnCountMax = 10;

absl::string_view WithoutLineEnds(absl::string_view text) {
  return text.substr(0, text.find_last_not_of("\r\n") + 1);
}

// Names a delimiter that the only column seems to have; empty if there is none.
std::string DelimiterHint(const std::vector<std::string>& columns) {
  const size_t found = columns.size() == 1 ? columns[0].find_first_of(";\t|")
                                           : std::string::npos;
  if (found == std::string::npos) {
    return "";
  }
  return absl::StrCat(
      "; another delimiter can be given, as in --delimiter ",
      columns[0][found] == '\t'
          ? "tab"
          : absl::StrCat("'", columns[0].substr(found, 1), "'"));
}

std::string MissingColumn(const std::string& name,
                          const std::vector<std::string>& columns) {
  const auto named = absl::MakeConstSpan(columns).first(
      std::min(columns.size(), kNamedColumnCountMax));
  return absl::StrCat(
      "is not a JSON object, and as the header line of a CSV it has no column ",
      QuotedText(name), "; its ",
      FormatCounted(columns.size(), "column is ", "columns are "),
      absl::StrJoin(named, ", ",
                    [](std::string* out, const std::string& column) {
                      out->append(QuotedText(column, 40));
                    }),
      columns.size() > named.size() ? ", ..." : "", DelimiterHint(columns));
}

SourceValue::Form FormOf(const RecordField& field) {
  switch (field.form) {
    case RecordField::Form::kText:
      return field.value.empty() ? SourceValue::Form::kNull
                                 : SourceValue::Form::kText;
    case RecordField::Form::kString:
      return SourceValue::Form::kString;
    case RecordField::Form::kNumber:
      return SourceValue::Form::kNumber;
    case RecordField::Form::kBoolean:
      return SourceValue::Form::kBoolean;
    case RecordField::Form::kNested:
      return SourceValue::Form::kNested;
  }
  return SourceValue::Form::kNull;
}

}  // namespace

FieldRoles::FieldRoles(const LineSplit& split,
                       std::shared_ptr<const IdRules> id_rules)
    : id_rules_(std::move(id_rules)) {
  const auto add = [this](Use use, const std::string& field) {
    if (!field.empty()) {
      roles_.push_back(
          {.use = use, .field = FieldIndex(field, use == Use::kText)});
    }
  };
  add(Use::kId, split.id_field);
  add(Use::kTime, split.time_field);
  // Last: it takes the value.
  add(Use::kText, split.text_field);
  for (const LineSplit::Field& field : split.fields) {
    value_fields_.push_back(FieldIndex(field.path, /*takes_any=*/true));
  }
}

size_t FieldRoles::FieldIndex(const std::string& name, bool takes_any) {
  size_t index = 0;
  while (index < fields_.size() && fields_[index].name != name) {
    ++index;
  }
  if (index == fields_.size()) {
    fields_.push_back({.name = name});
  }
  fields_[index].takes_any |= takes_any;
  return index;
}

void FieldRoles::StartFile() {
  header_.clear();
  column_count_ = 0;
}

bool FieldRoles::IsHeader(absl::string_view record) const {
  return column_count_ > 1 &&
         WithoutLineEnds(WithoutByteOrderMark(record)) == header_;
}

absl::Status FieldRoles::ReadHeader(absl::string_view record,
                                    const CsvDialect& dialect, OnNote on_note) {
  const absl::StatusOr<std::vector<std::string>> columns =
      SplitCsvRecord(record, dialect);
  if (!columns.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the header line ", columns.status().message()));
  }
  column_count_ = columns->size();
  header_ = std::string(WithoutLineEnds(record));
  for (RecordField& field : fields_) {
    const auto column = std::find(columns->begin(), columns->end(), field.name);
    if (column == columns->end()) {
      return absl::InvalidArgumentError(MissingColumn(field.name, *columns));
    }
    field.column = static_cast<size_t>(column - columns->begin());
    const auto count = std::count(column, columns->end(), field.name);
    if (count > 1) {
      on_note(EntryNote::kTolerated,
              absl::StrCat("has ", count, " columns ", QuotedText(field.name),
                           ", and the first is read"));
    }
  }
  return absl::OkStatus();
}

void FieldRoles::Apply(absl::string_view record, const LineFormat& format,
                       SourceDocument& document,
                       std::optional<std::string>& text, OnNote on_note) {
  ++record_count_;
  tolerated_.clear();
  absl::Status status;
  if (format.kind == LineFormat::Kind::kCsv) {
    status = ReadCsvFields(record, column_count_, absl::MakeSpan(fields_),
                           format.dialect);
  } else {
    record.remove_prefix(
        std::min(record.find_first_not_of(kRecordBlanks), record.size()));
    status = ReadJsonFields(record, absl::MakeSpan(fields_), &tolerated_);
  }
  if (!status.ok()) {
    on_note(EntryNote::kBadRecord, status.message());
    return;
  }
  if (!tolerated_.empty()) {
    on_note(EntryNote::kTolerated,
            absl::StrCat(tolerated_, ", and the fields could be read"));
  }
  ApplyValues(document, on_note);
  for (Role& role : roles_) {
    const std::string problem = ApplyRole(role, document, text);
    if (problem.empty()) {
      ++role.usable_count;
    } else {
      on_note(EntryNote::kBadRecord, problem);
    }
  }
}

void FieldRoles::ApplyValues(SourceDocument& document, OnNote on_note) {
  document.fields.resize(value_fields_.size());
  for (size_t i = 0; i < value_fields_.size(); ++i) {
    const RecordField& field = fields_[value_fields_[i]];
    if (field.state == RecordField::State::kMalformed) {
      on_note(EntryNote::kBadRecord,
              absl::StrCat(field.value, ", in field ", QuotedText(field.name)));
    }
    if (field.state == RecordField::State::kFound) {
      document.fields[i] = {.form = FormOf(field), .text = field.value};
    }
  }
}

std::string FieldRoles::ApplyId(const RecordField& field,
                                SourceDocument& document) {
  std::string id =
      id_rules_ == nullptr ? field.value : id_rules_->Rename(field.value);
  if (id.size() > kDocumentIdSizeBytesMax) {
    return absl::StrCat("has ", FormatCount(field.value.size()),
                        " bytes in field ", QuotedText(field.name),
                        ", and an id must be at most ",
                        FormatCount(kDocumentIdSizeBytesMax), " bytes");
  }
  document.id = std::move(id);
  document.has_given_id = true;
  return "";
}

std::string FieldRoles::ApplyRole(const Role& role, SourceDocument& document,
                                  std::optional<std::string>& text) {
  RecordField& field = fields_[role.field];
  const auto of_field = [&field](absl::string_view problem) {
    return absl::StrCat(problem, " field ", QuotedText(field.name));
  };
  if (field.state == RecordField::State::kMissing) {
    return of_field("has no");
  }
  if (field.state == RecordField::State::kMalformed) {
    return absl::StrCat(field.value, ", in field ", QuotedText(field.name));
  }
  const bool is_null = field.state == RecordField::State::kWrongType;
  if (role.use == Use::kText) {
    if (is_null) {
      return of_field("has null in");
    }
    text = std::move(field.value);
    return "";
  }
  if (is_null || field.form == RecordField::Form::kBoolean ||
      field.form == RecordField::Form::kNested) {
    return of_field(role.use == Use::kTime
                        ? "has no string in"
                        : "has neither a string nor a number in");
  }
  if (field.value.empty()) {
    return of_field("has an empty");
  }
  if (role.use == Use::kId) {
    return ApplyId(field, document);
  }
  const std::optional<FieldTime> time = field.form == RecordField::Form::kNumber
                                            ? std::nullopt
                                            : ParseFieldTime(field.value);
  if (!time.has_value()) {
    return absl::StrCat(of_field("has no time in"), ": ",
                        QuotedText(field.value, 40),
                        ", expected one such as 2024-01-31T12:30:45Z");
  }
  // Rounded down.
  document.capture_time_ms = time->us / 1000 - (time->us % 1000 < 0 ? 1 : 0);
  return "";
}

absl::Status FieldRoles::CheckFound(const std::string& name,
                                    const std::string& first_problem) {
  const uint64_t record_count = std::exchange(record_count_, 0);
  for (const Role& role : roles_) {
    if (record_count > 0 && role.usable_count == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": none of its ",
                       FormatCounted(record_count, "record has", "records has"),
                       " a usable field ", QuotedText(fields_[role.field].name),
                       "; ", first_problem));
    }
  }
  return absl::OkStatus();
}

}  // namespace quire
