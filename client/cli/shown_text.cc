// SPDX-License-Identifier: Apache-2.0
#include "client/cli/shown_text.h"

#include <cmath>
#include <cstddef>
#include <variant>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"

#include "client/quire/document_fields.h"
#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"
#include "codecs/base/json_text.h"
#include "codecs/base/printable_text.h"
#include "codecs/filter/field_value.h"

namespace quire {
namespace {

constexpr size_t kFileNameSizeBytesMax = 200;
// "%%" and 16 digits.
constexpr size_t kHashSuffixSizeBytes = 18;

}  // namespace

std::string JsonBytes(absl::string_view name, absl::string_view bytes) {
  if (IsUtf8(bytes)) {
    return absl::StrCat(JsonString(name), ":", JsonString(bytes));
  }
  return absl::StrCat(JsonString(absl::StrCat(name, "_base64")), ":\"",
                      absl::Base64Escape(bytes), "\"");
}

namespace {

std::string JsonFloat(double value) {
  return std::isnan(value)   ? "\"NaN\""
         : std::isinf(value) ? value > 0 ? "\"Infinity\"" : "\"-Infinity\""
                             : FormatField(value);
}

}  // namespace

std::string JsonFields(absl::Span<const std::string> names,
                       const v1::Document& document) {
  std::string json = "\"fields\":{";
  for (size_t i = 0; i < names.size(); ++i) {
    const FieldView value = ViewOf(document.fields(static_cast<int>(i)));
    absl::StrAppend(&json, i == 0 ? "" : ",");
    if (const auto* const text = std::get_if<absl::string_view>(&value)) {
      absl::StrAppend(&json, JsonBytes(names[i], *text));
      continue;
    }
    const auto* const number = std::get_if<double>(&value);
    const std::string shown =
        number != nullptr ? JsonFloat(*number) : FormatField(value);
    absl::StrAppend(
        &json, JsonString(names[i]), ":",
        TypeOf(value) == FieldType::kTime ? JsonString(shown) : shown);
  }
  return json + "}";
}

std::string FieldText(const v1::FieldValue& field) {
  const FieldView value = ViewOf(field);
  if (const auto* const text = std::get_if<absl::string_view>(&value)) {
    return PrintableText(*text);
  }
  return TypeOf(value) == FieldType::kNull ? "-" : FormatField(value);
}

std::string FieldTypeText(v1::FieldType type) {
  return type >= v1::FIELD_TYPE_STRING && type <= v1::FIELD_TYPE_TIME
             ? std::string(FieldTypeName(static_cast<FieldType>(type)))
             : absl::StrCat("type ", static_cast<int>(type));
}

std::string SafeFileName(absl::string_view bytes) {
  std::string name;
  for (const char c : bytes) {
    const bool is_leading_dot = c == '.' && name.empty();
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' ||
        c == '-' || (c == '.' && !is_leading_dot)) {
      name += c;
    } else {
      absl::StrAppendFormat(&name, "%%%02X", static_cast<uint8_t>(c));
    }
    if (name.size() > kFileNameSizeBytesMax) {
      break;
    }
  }
  if (name.empty()) {
    return "%";
  }
  if (name.size() > kFileNameSizeBytesMax) {
    // Names that were not truncated never contain "%%".
    name = absl::StrFormat(
        "%s%%%%%016x",
        name.substr(0, kFileNameSizeBytesMax - kHashSuffixSizeBytes),
        Checksum64(AsBytes(bytes)));
  }
  return name;
}

std::string FormatTimeMs(int64_t time_ms) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::FromUnixMillis(time_ms),
                          absl::UTCTimeZone());
}

std::string JsonDocument(const v1::Document& document) {
  std::string json = absl::StrCat(
      JsonBytes("id", document.id()), ",\"ordinal\":", document.ordinal(),
      ",\"offset\":", document.range().offset(),
      ",\"size_bytes\":", document.range().size_bytes());
  if (document.has_capture_time_ms()) {
    absl::StrAppend(&json, ",\"capture_time\":\"",
                    FormatTimeMs(document.capture_time_ms()), "\"");
  }
  if (document.has_media_type()) {
    absl::StrAppend(&json, ",", JsonBytes("media_type", document.media_type()));
  }
  if (document.has_record_type()) {
    absl::StrAppend(&json, ",",
                    JsonBytes("record_type", document.record_type()));
  }
  if (document.has_occurrence()) {
    absl::StrAppend(&json, ",\"occurrence\":", document.occurrence());
  }
  return json;
}

}  // namespace quire
