// SPDX-License-Identifier: Apache-2.0
//
// A filter over the fields of a document, as text: the language of --where, of
// ListDocuments and of rules that withdraw documents.
//
//   lang = "de" and time >= 2024-01-01 and not (url prefix "https://a/")
//   domain "news.test" and time >= 2019-01-01 and time < 2022-01-01
//
//   filter     = term { "or" term }
//   term       = factor { "and" factor }
//   factor     = "not" factor | "(" filter ")" | NAME condition
//              | ( "host" | "domain" ) STRING
//   condition  = ( "=" | "!=" | "<" | "<=" | ">" | ">=" ) value
//              | [ "not" ] "in" "(" value { "," value } ")"
//              | [ "not" ] "prefix" STRING
//              | "is" [ "not" ] "null"
//   value      = STRING | NUMBER | TIME | "true" | "false"
//
// STRING is in single or double quotes, with \\, \", \' and \xNN for any byte.
// TIME is a date or a time of RFC 3339 without quotes (ParseFieldTime()). Words
// are recognised in any case, names of fields only as they are. Integers and
// floats are compared with each other, by their exact numbers; other types only
// with themselves. Strings are compared as unsigned bytes.
//
// NAME is a field of the archive, or an attribute that every document has:
//   id           string   as stored
//   ordinal      integer  from 0, in the order of the archive
//   size         integer  bytes
//   time         time     capture time
//   type         string   media type
//   record_type  string   of WARC, in lower case
//
// `domain "news.test"` is true for documents whose id is or holds a URL of the
// host news.test or of a host below it, and `host "news.test"` for those of the
// host alone: with any scheme, port and user, with and without "www.", and in
// forms such as urn:pageinfo:URL and screenshot:URL. SurtHostOfId() of
// codecs/surt/surt_key.h has the rules. STRING is a name or address alone. Both
// are false for ids without a host. Before other conditions host and domain are
// names of fields: domain = "news.test".
//
// Callers that know captures add their attributes (CaptureAttributes()).
//
// Nulls follow SQL. A comparison, `in` or `prefix` with a field that is null or
// not a number (NaN) is unknown; so is `not` of it. `and` is false if one side
// is, otherwise unknown if one side is; `or` is true if one side is, otherwise
// unknown if one side is. A document matches if the filter is true for it.
// Thus neither lang = "de" nor lang != "de" matches a document without lang;
// lang is null does.
#ifndef QUIRE_CODECS_FILTER_FILTER_H_
#define QUIRE_CODECS_FILTER_FILTER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include "codecs/filter/field_value.h"

namespace quire {

// Limits on filters.
inline constexpr size_t kFilterSizeBytesMax = size_t{16} << 10;
// Parentheses and `not` inside each other.
inline constexpr size_t kFilterDepthMax = 64;
// Values, and `is null`, in the whole filter.
inline constexpr size_t kFilterValuesMax = 1024;

// Name and type of a column.
struct FieldColumn {
  std::string name;
  FieldType type = FieldType::kString;
  friend bool operator==(const FieldColumn&, const FieldColumn&) = default;
};

// Attributes that every document has, in the order of the table above.
absl::Span<const FieldColumn> DocumentAttributes();

// Type of the attribute of this name; nothing for other names.
std::optional<FieldType> DocumentAttributeType(absl::string_view name);

// Attributes that only captures in the index of captures of a crawl have, for
// Check() where they are known: `digest`, a string as the record states it, and
// `status`, an integer, that of HTTP. Fields of the same names hide them.
absl::Span<const FieldColumn> CaptureAttributes();

// Returns `fields` and the attributes of captures that they do not hide.
std::vector<FieldColumn> WithCaptureAttributes(
    absl::Span<const FieldColumn> fields);

// Attributes of one document; its strings are borrowed.
struct DocumentAttributeValues {
  absl::string_view id = {};
  uint64_t ordinal = 0;
  uint64_t size_bytes = 0;
  // Milliseconds since 1970-01-01 UTC.
  std::optional<int64_t> time_ms = {};
  std::optional<absl::string_view> type = {};
  std::optional<absl::string_view> record_type = {};
};

// Returns the value of an attribute; null for other names, and for a missing
// attribute. Times beyond those of FieldTime are the nearest of these.
FieldView AttributeOf(const DocumentAttributeValues& document,
                      absl::string_view name);

// One node of the tree of a filter.
struct FilterNode {
  enum class Kind : uint8_t {
    kAnd,
    kOr,
    kNot,
    kEqual,
    kNotEqual,
    kLess,
    kLessOrEqual,
    kGreater,
    kGreaterOrEqual,
    kIn,
    kPrefix,
    kIsNull,
    // The name is "id", and the value a host in the order of SURT.
    kHost,
    kDomain,
  };

  Kind kind = Kind::kAnd;
  // Indexes of nodes: two or more for kAnd and kOr, one for kNot.
  std::vector<uint32_t> children = {};
  // Index of the name, for conditions.
  uint32_t name = 0;
  // One for comparisons, kPrefix, kHost and kDomain; for kIn one or more,
  // ascending.
  std::vector<FieldValue> values = {};
  // Where the name and the first value begin in the text, in bytes.
  size_t name_offset = 0;
  size_t value_offset = 0;
};

// Immutable; thread-safe. Copies are deep.
class Filter {
 public:
  // Errors: InvalidArgument  a limit is exceeded, or the text is malformed:
  //                          "column 8: " and what was found and expected.
  //                          Columns count characters, from 1.
  static absl::StatusOr<Filter> Parse(absl::string_view text);

  const std::string& text() const { return text_; }

  // Each name once, in the order of its first use. Attributes are among them.
  const std::vector<std::string>& names() const { return names_; }

  // The names that are not attributes.
  std::vector<std::string> field_names() const;

  // The names that are attributes of captures and none of `fields`.
  std::vector<std::string> CaptureNames(
      absl::Span<const FieldColumn> fields) const;

  // Memory, in bytes.
  size_t MemoryBytes() const;

  // Checks that each name is an attribute or one of `columns`, and that its
  // type can be compared with the values.
  // Errors: InvalidArgument  a value of another type; as Parse().
  //         NotFound         no such field; names some of those that exist.
  absl::Status Check(absl::Span<const FieldColumn> columns) const;

  // True if a document with these values, in the order of names(), matches.
  // Values whose type does not fit, which Check() would refuse, are as null.
  // REQUIRES: values.size() == names().size().
  bool Matches(absl::Span<const FieldView> values) const;

  // False only if no document whose values are in `ranges`, in the order of
  // names(), matches. REQUIRES: ranges.size() == names().size().
  bool CouldMatch(absl::Span<const FieldRange> ranges) const;

  // False only if no document matches whose values of these names are null.
  bool CouldMatchNulls(absl::Span<const std::string> nulls) const;

 private:
  friend class FilterParser;

  // Possible values of a node over a group of documents.
  struct Outcomes {
    bool may_be_true = true;
    bool may_be_false = true;
  };

  Filter() = default;

  // Values of a document, and the host of its id once it is needed.
  struct Row {
    absl::Span<const FieldView> values;
    std::optional<std::string> host = {};
  };

  // Nothing: unknown.
  std::optional<bool> Evaluate(uint32_t node, Row& row) const;
  static std::optional<bool> EvaluateHost(const FilterNode& node, Row& row);
  Outcomes Bound(uint32_t node, absl::Span<const FieldRange> ranges) const;
  absl::Status CheckValues(const FilterNode& node, FieldType type) const;

  std::string text_;
  std::vector<std::string> names_;
  std::vector<FilterNode> nodes_;
  // Index of the root.
  uint32_t root_ = 0;
};

// Returns InvalidArgument, "column N: " with the column of `offset` and then
// `message`. For the parser and Check().
absl::Status FilterError(absl::string_view text, size_t offset,
                         absl::string_view message);

}  // namespace quire

#endif  // QUIRE_CODECS_FILTER_FILTER_H_
