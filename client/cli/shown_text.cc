// SPDX-License-Identifier: Apache-2.0
#include "client/cli/shown_text.h"

#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"

#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"
#include "codecs/base/json_text.h"
#include "codecs/base/printable_text.h"

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
  return json;
}

}  // namespace quire
