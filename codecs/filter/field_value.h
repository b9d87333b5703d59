// SPDX-License-Identifier: Apache-2.0
//
// Values of the fields of a document: what archives store by column, servers
// send and filters compare.
#ifndef QUIRE_CODECS_FILTER_FIELD_VALUE_H_
#define QUIRE_CODECS_FILTER_FIELD_VALUE_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace quire {

// Type of a value, and of all values of a column, which may be null, too.
// The numbers are those of quire.v1.FieldType and of archives; never
// renumbered.
enum class FieldType : uint8_t {
  kNull = 0,
  // Any bytes; ordered as unsigned bytes.
  kString = 1,
  // 64 bits, signed.
  kInteger = 2,
  // IEEE 754, 64 bits.
  kFloat = 3,
  kBoolean = 4,
  kTime = 5,
};

// A point in time, in microseconds since 1970-01-01 UTC, without leap seconds.
struct FieldTime {
  int64_t us = 0;
  friend bool operator==(const FieldTime&, const FieldTime&) = default;
};

// Alternatives are in the order of FieldType. A view borrows its string.
using FieldValue =
    std::variant<std::monostate, std::string, int64_t, double, bool, FieldTime>;
using FieldView = std::variant<std::monostate, absl::string_view, int64_t,
                               double, bool, FieldTime>;

// All functions are thread-safe.

FieldType TypeOf(const FieldView& value);

// The view borrows `value`.
FieldView ViewOf(const FieldValue& value);

FieldValue ValueOf(const FieldView& view);

// "null", "string", "integer", "float", "boolean" or "time".
absl::string_view FieldTypeName(FieldType type);

// Returns the type of a name above; nothing for other names and for "null",
// which is not a type of columns.
std::optional<FieldType> ParseFieldType(absl::string_view name);

// Upper bound on names of fields.
inline constexpr size_t kFieldNameSizeBytesMax = 64;

// A name has 1 to 64 of [A-Za-z0-9_.] and begins with a letter or _. In any
// case, it is not a word of the language of filters (and, or, not, in, is,
// prefix, null, true, false) and does not name an attribute that every document
// has (id, ordinal, size, time, type, record_type).
// Errors: InvalidArgument  names the field, the cause and an example.
absl::Status CheckFieldName(absl::string_view name);

// Compares values of one type, or an integer with a float, by their exact
// numbers. Nothing, if one is null or not a number (NaN), or if the types
// differ otherwise. -0.0 equals 0.0, and false is less than true.
std::optional<std::weak_ordering> CompareFields(const FieldView& a,
                                                const FieldView& b);

// Parses a date, 2024-01-31, which is its first moment in UTC, or a time of RFC
// 3339, 2024-01-31T12:30:45.5Z or with an offset such as +02:00, of the years 1
// to 9999. Up to nine digits of a fraction; those after the sixth are dropped.
// Nothing for other text.
std::optional<FieldTime> ParseFieldTime(absl::string_view text);

// Returns "2024-01-31T12:30:45Z", with three or six digits of a fraction if it
// is not 0. Outside the years 1 to 9999: the number of microseconds.
std::string FormatFieldTime(FieldTime time);

// Returns the value as filters write it: "text" with \" and \\, and \xNN for
// bytes that are not printable; null, true, 12, 1.5, 2024-01-31T12:30:45Z.
std::string FormatField(const FieldView& value);

// Bounds on the values of one field in a group of documents, such as a block of
// an archive. Strings are borrowed.
struct FieldRange {
  // No value that is not null or NaN is less than `least` or greater than
  // `greatest`. Null: not bounded. Both need not occur, so that long strings
  // can be shortened.
  FieldView least = {};
  FieldView greatest = {};
  // False: all values are null.
  bool may_have_values = true;
  // False: no value is null.
  bool may_have_nulls = true;
};

}  // namespace quire

#endif  // QUIRE_CODECS_FILTER_FIELD_VALUE_H_
