// SPDX-License-Identifier: Apache-2.0
#include "codecs/filter/filter.h"

#include <algorithm>
#include <array>
#include <limits>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/check.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "codecs/surt/surt_key.h"

namespace quire {
namespace {

using Kind = FilterNode::Kind;

// Fields that an error names; more are counted.
constexpr size_t kNamedFieldsMax = 20;

bool IsNumber(FieldType type) {
  return type == FieldType::kInteger || type == FieldType::kFloat;
}

bool AreComparable(FieldType a, FieldType b) {
  return a == b || (IsNumber(a) && IsNumber(b));
}

// A hint for names that mean something in other filters.
absl::string_view HintFor(absl::string_view name) {
  if (absl::EqualsIgnoreCase(name, "host") ||
      absl::EqualsIgnoreCase(name, "domain")) {
    return "; the host of a document has no operator: domain \"news.test\"";
  }
  for (const FieldColumn& attribute : CaptureAttributes()) {
    if (attribute.name == name) {
      return "; digest and status are those of captures: rules that withdraw "
             "documents, quired redact, quire ls and lists of captures know "
             "them if the archive has an index of captures";
    }
  }
  return "";
}

// True if `order` is what the comparison of `kind` asks for.
bool Holds(Kind kind, std::weak_ordering order) {
  switch (kind) {
    case Kind::kEqual:
      return order == 0;
    case Kind::kNotEqual:
      return order != 0;
    case Kind::kLess:
      return order < 0;
    case Kind::kLessOrEqual:
      return order <= 0;
    case Kind::kGreater:
      return order > 0;
    case Kind::kGreaterOrEqual:
      return order >= 0;
    default:
      return false;
  }
}

// Nothing if `value` is not comparable with the sorted `list`.
std::optional<bool> IsIn(const FieldView& value,
                         const std::vector<FieldValue>& list) {
  if (!CompareFields(value, ViewOf(list.front())).has_value()) {
    return std::nullopt;
  }
  const auto found = std::lower_bound(
      list.begin(), list.end(), value,
      [](const FieldValue& element, const FieldView& searched) {
        return *CompareFields(ViewOf(element), searched) < 0;
      });
  return found != list.end() && *CompareFields(ViewOf(*found), value) == 0;
}

// Evaluates a condition of a field.
std::optional<bool> EvaluateCondition(const FilterNode& node,
                                      const FieldView& value) {
  switch (node.kind) {
    case Kind::kIsNull:
      return std::holds_alternative<std::monostate>(value);
    case Kind::kIn:
      return IsIn(value, node.values);
    case Kind::kPrefix: {
      const auto* const text = std::get_if<absl::string_view>(&value);
      return text == nullptr
                 ? std::nullopt
                 : std::optional(absl::StartsWith(
                       *text, std::get<std::string>(node.values.front())));
    }
    default: {
      const std::optional<std::weak_ordering> order =
          CompareFields(value, ViewOf(node.values.front()));
      return order.has_value() ? std::optional(Holds(node.kind, *order))
                               : std::nullopt;
    }
  }
}

// True unless a <= b is known to be false. Null bounds are not known.
bool MayBeAtMost(const FieldView& a, const FieldView& b) {
  const std::optional<std::weak_ordering> order = CompareFields(a, b);
  return !order.has_value() || *order <= 0;
}

bool MayBeLess(const FieldView& a, const FieldView& b) {
  const std::optional<std::weak_ordering> order = CompareFields(a, b);
  return !order.has_value() || *order < 0;
}

// True if all values of the range that can be compared equal `value`.
bool IsOnly(const FieldRange& range, const FieldView& value) {
  const std::optional<std::weak_ordering> least =
      CompareFields(range.least, value);
  const std::optional<std::weak_ordering> greatest =
      CompareFields(range.greatest, value);
  return least.has_value() && greatest.has_value() && *least == 0 &&
         *greatest == 0;
}

bool MayHave(const FieldRange& range, const FieldView& value) {
  return MayBeAtMost(range.least, value) && MayBeAtMost(value, range.greatest);
}

bool MayHavePrefix(const FieldRange& range, absl::string_view prefix) {
  const auto* const least = std::get_if<absl::string_view>(&range.least);
  return (least == nullptr || least->substr(0, prefix.size()) <= prefix) &&
         MayBeAtMost(prefix, range.greatest);
}

bool HasOnlyPrefix(const FieldRange& range, absl::string_view prefix) {
  const auto* const least = std::get_if<absl::string_view>(&range.least);
  const auto* const greatest = std::get_if<absl::string_view>(&range.greatest);
  return least != nullptr && greatest != nullptr &&
         absl::StartsWith(*least, prefix) &&
         absl::StartsWith(*greatest, prefix);
}

}  // namespace

absl::Span<const FieldColumn> DocumentAttributes() {
  static const auto* const attributes =
      new std::array<FieldColumn, 6>{{{"id", FieldType::kString},
                                      {"ordinal", FieldType::kInteger},
                                      {"size", FieldType::kInteger},
                                      {"time", FieldType::kTime},
                                      {"type", FieldType::kString},
                                      {"record_type", FieldType::kString}}};
  return *attributes;
}

absl::Span<const FieldColumn> CaptureAttributes() {
  static const auto* const attributes = new std::array<FieldColumn, 2>{
      {{"digest", FieldType::kString}, {"status", FieldType::kInteger}}};
  return *attributes;
}

std::vector<FieldColumn> WithCaptureAttributes(
    absl::Span<const FieldColumn> fields) {
  std::vector<FieldColumn> columns(fields.begin(), fields.end());
  for (const FieldColumn& attribute : CaptureAttributes()) {
    if (std::none_of(fields.begin(), fields.end(),
                     [&](const FieldColumn& field) {
                       return field.name == attribute.name;
                     })) {
      columns.push_back(attribute);
    }
  }
  return columns;
}

std::optional<FieldType> DocumentAttributeType(absl::string_view name) {
  for (const FieldColumn& attribute : DocumentAttributes()) {
    if (attribute.name == name) {
      return attribute.type;
    }
  }
  return std::nullopt;
}

FieldView AttributeOf(const DocumentAttributeValues& document,
                      absl::string_view name) {
  constexpr int64_t kLargestMs = std::numeric_limits<int64_t>::max() / 1000;
  constexpr uint64_t kLargest = std::numeric_limits<int64_t>::max();
  if (name == "id") {
    return document.id;
  }
  if (name == "ordinal") {
    return static_cast<int64_t>(std::min(document.ordinal, kLargest));
  }
  if (name == "size") {
    return static_cast<int64_t>(std::min(document.size_bytes, kLargest));
  }
  if (name == "time" && document.time_ms.has_value()) {
    return FieldTime{std::clamp(*document.time_ms, -kLargestMs, kLargestMs) *
                     1000};
  }
  if (name == "type" && document.type.has_value()) {
    return *document.type;
  }
  if (name == "record_type" && document.record_type.has_value()) {
    return *document.record_type;
  }
  return {};
}

absl::Status FilterError(absl::string_view text, size_t offset,
                         absl::string_view message) {
  const absl::string_view before = text.substr(0, offset);
  const auto column =
      1 + std::count_if(before.begin(), before.end(), [](char c) {
        // Other bytes of a character of UTF-8 than the first are 10xxxxxx.
        return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
      });
  return absl::InvalidArgumentError(
      absl::StrCat("column ", column, ": ", message));
}

std::vector<std::string> Filter::field_names() const {
  std::vector<std::string> names;
  for (const std::string& name : names_) {
    if (!DocumentAttributeType(name).has_value()) {
      names.push_back(name);
    }
  }
  return names;
}

std::vector<std::string> Filter::CaptureNames(
    absl::Span<const FieldColumn> fields) const {
  std::vector<std::string> names;
  for (const FieldColumn& attribute : CaptureAttributes()) {
    const bool is_hidden = std::any_of(
        fields.begin(), fields.end(),
        [&](const FieldColumn& field) { return field.name == attribute.name; });
    if (!is_hidden && std::find(names_.begin(), names_.end(), attribute.name) !=
                          names_.end()) {
      names.push_back(attribute.name);
    }
  }
  return names;
}

size_t Filter::MemoryBytes() const {
  const auto string_bytes = [](const std::string& text) {
    return sizeof(std::string) + text.capacity();
  };
  size_t bytes = sizeof(*this) + text_.capacity();
  for (const std::string& name : names_) {
    bytes += string_bytes(name);
  }
  for (const FilterNode& node : nodes_) {
    bytes += sizeof(node) + node.children.capacity() * sizeof(uint32_t) +
             node.values.capacity() * sizeof(FieldValue);
    for (const FieldValue& value : node.values) {
      const auto* const text = std::get_if<std::string>(&value);
      bytes += text == nullptr ? 0 : text->capacity();
    }
  }
  return bytes;
}

absl::Status Filter::Check(absl::Span<const FieldColumn> columns) const {
  for (const FilterNode& node : nodes_) {
    if (!node.children.empty()) {
      continue;
    }
    const std::string& name = names_[node.name];
    std::optional<FieldType> type = DocumentAttributeType(name);
    for (const FieldColumn& column : columns) {
      if (column.name == name) {
        type = column.type;
      }
    }
    if (!type.has_value()) {
      std::string known;
      for (size_t i = 0; i < std::min(columns.size(), kNamedFieldsMax); ++i) {
        absl::StrAppend(&known, columns[i].name, ", ");
      }
      if (columns.size() > kNamedFieldsMax) {
        absl::StrAppend(&known, columns.size() - kNamedFieldsMax, " others, ");
      }
      return absl::NotFoundError(
          FilterError(
              text_, node.name_offset,
              absl::StrCat("no field ", QuotedText(name),
                           "; expected a field of the archive or an "
                           "attribute: ",
                           known, "id, ordinal, size, time, type, record_type",
                           HintFor(name)))
              .message());
    }
    QUIRE_RETURN_IF_ERROR(CheckValues(node, *type));
  }
  return absl::OkStatus();
}

absl::Status Filter::CheckValues(const FilterNode& node, FieldType type) const {
  const std::string& name = names_[node.name];
  if (node.kind == Kind::kPrefix && type != FieldType::kString) {
    return FilterError(text_, node.name_offset,
                       absl::StrCat("prefix expects a string, but ", name,
                                    " has the type ", FieldTypeName(type)));
  }
  for (const FieldValue& value : node.values) {
    const FieldType found = TypeOf(ViewOf(value));
    if (!AreComparable(type, found)) {
      return FilterError(
          text_, node.value_offset,
          absl::StrCat("found a value of the type ", FieldTypeName(found),
                       ", expected ", FieldTypeName(type), ", the type of ",
                       name,
                       type == FieldType::kTime
                           ? ": 2024-01-31 or 2024-01-31T12:30:45Z, without "
                             "quotes"
                       : type == FieldType::kString ? ": \"text\" in quotes"
                                                    : ""));
    }
  }
  return absl::OkStatus();
}

bool Filter::Matches(absl::Span<const FieldView> values) const {
  QUIRE_CHECK(values.size() == names_.size(), "one value for each name");
  Row row = {.values = values};
  return Evaluate(root_, row).value_or(false);
}

bool Filter::CouldMatch(absl::Span<const FieldRange> ranges) const {
  QUIRE_CHECK(ranges.size() == names_.size(), "one range for each name");
  return Bound(root_, ranges).may_be_true;
}

bool Filter::CouldMatchNulls(absl::Span<const std::string> nulls) const {
  std::vector<FieldRange> ranges;
  for (const std::string& name : names_) {
    const bool is_null =
        std::find(nulls.begin(), nulls.end(), name) != nulls.end();
    ranges.push_back(is_null ? FieldRange{.may_have_values = false}
                             : FieldRange());
  }
  return CouldMatch(ranges);
}

std::optional<bool> Filter::EvaluateHost(const FilterNode& node, Row& row) {
  const auto* const id = std::get_if<absl::string_view>(&row.values[node.name]);
  if (id == nullptr) {
    return std::nullopt;
  }
  if (!row.host.has_value()) {
    row.host = SurtHostOfId(*id);
  }
  const auto& searched = std::get<std::string>(node.values.front());
  return node.kind == Kind::kHost ? *row.host == searched
                                  : IsInSurtDomain(*row.host, searched);
}

std::optional<bool> Filter::Evaluate(uint32_t node, Row& row) const {
  const FilterNode& term = nodes_[node];
  if (term.kind == Kind::kNot) {
    const std::optional<bool> inner = Evaluate(term.children.front(), row);
    return inner.has_value() ? std::optional(!*inner) : std::nullopt;
  }
  if (term.kind != Kind::kAnd && term.kind != Kind::kOr) {
    return term.kind == Kind::kHost || term.kind == Kind::kDomain
               ? EvaluateHost(term, row)
               : EvaluateCondition(term, row.values[term.name]);
  }
  // The value that decides, however the other children are.
  const bool deciding = term.kind == Kind::kOr;
  std::optional<bool> result = !deciding;
  for (const uint32_t child : term.children) {
    const std::optional<bool> inner = Evaluate(child, row);
    if (inner == deciding) {
      return deciding;
    }
    if (!inner.has_value()) {
      result = std::nullopt;
    }
  }
  return result;
}

Filter::Outcomes Filter::Bound(uint32_t node,
                               absl::Span<const FieldRange> ranges) const {
  const FilterNode& term = nodes_[node];
  if (!term.children.empty()) {
    const bool is_or = term.kind == Kind::kOr;
    Outcomes all = {.may_be_true = !is_or, .may_be_false = is_or};
    for (const uint32_t child : term.children) {
      const Outcomes inner = Bound(child, ranges);
      if (term.kind == Kind::kNot) {
        return {.may_be_true = inner.may_be_false,
                .may_be_false = inner.may_be_true};
      }
      all.may_be_true = is_or ? all.may_be_true || inner.may_be_true
                              : all.may_be_true && inner.may_be_true;
      all.may_be_false = is_or ? all.may_be_false && inner.may_be_false
                               : all.may_be_false || inner.may_be_false;
    }
    return all;
  }
  const FieldRange& range = ranges[term.name];
  if (term.kind == Kind::kIsNull) {
    return {.may_be_true = range.may_have_nulls,
            .may_be_false = range.may_have_values};
  }
  if (!range.may_have_values) {
    return {.may_be_true = false, .may_be_false = false};
  }
  const FieldView value = ViewOf(term.values.front());
  const auto is_in_range = [&](const FieldValue& v) {
    return MayHave(range, ViewOf(v));
  };
  const auto is_all_of_range = [&](const FieldValue& v) {
    return IsOnly(range, ViewOf(v));
  };
  switch (term.kind) {
    case Kind::kEqual:
    case Kind::kIn:
      return {.may_be_true = std::any_of(term.values.begin(), term.values.end(),
                                         is_in_range),
              .may_be_false = std::none_of(term.values.begin(),
                                           term.values.end(), is_all_of_range)};
    case Kind::kNotEqual:
      return {.may_be_true = !IsOnly(range, value),
              .may_be_false = MayHave(range, value)};
    case Kind::kLess:
      return {.may_be_true = MayBeLess(range.least, value),
              .may_be_false = MayBeAtMost(value, range.greatest)};
    case Kind::kLessOrEqual:
      return {.may_be_true = MayBeAtMost(range.least, value),
              .may_be_false = MayBeLess(value, range.greatest)};
    case Kind::kGreater:
      return {.may_be_true = MayBeLess(value, range.greatest),
              .may_be_false = MayBeAtMost(range.least, value)};
    case Kind::kGreaterOrEqual:
      return {.may_be_true = MayBeAtMost(value, range.greatest),
              .may_be_false = MayBeLess(range.least, value)};
    case Kind::kPrefix: {
      const auto prefix = std::get<absl::string_view>(value);
      return {.may_be_true = MayHavePrefix(range, prefix),
              .may_be_false = !HasOnlyPrefix(range, prefix)};
    }
    default:
      return {};
  }
}

}  // namespace quire
