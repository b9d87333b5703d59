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

namespace quire {
namespace {

constexpr size_t kFileNameSizeBytesMax = 200;
// "%%" and 16 digits.
constexpr size_t kHashSuffixSizeBytes = 18;

uint8_t ByteAt(absl::string_view text, size_t i) {
  return static_cast<uint8_t>(text[i]);
}

// Length of the well-formed UTF-8 sequence that `text` starts with; 0 if there
// is none. The ranges are those of the Unicode standard, table 3-7.
size_t Utf8SequenceSize(absl::string_view text) {
  const uint8_t first = ByteAt(text, 0);
  if (first < 0x80) {
    return 1;
  }
  size_t size = 0;
  uint8_t second_min = 0x80;
  uint8_t second_max = 0xBF;
  if (first >= 0xC2 && first <= 0xDF) {
    size = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    size = 3;
    second_min = first == 0xE0 ? 0xA0 : 0x80;
    second_max = first == 0xED ? 0x9F : 0xBF;
  } else if (first >= 0xF0 && first <= 0xF4) {
    size = 4;
    second_min = first == 0xF0 ? 0x90 : 0x80;
    second_max = first == 0xF4 ? 0x8F : 0xBF;
  }
  if (size == 0 || text.size() < size || ByteAt(text, 1) < second_min ||
      ByteAt(text, 1) > second_max) {
    return 0;
  }
  for (size_t i = 2; i < size; ++i) {
    if ((ByteAt(text, i) & 0xC0) != 0x80) {
      return 0;
    }
  }
  return size;
}

}  // namespace

bool IsUtf8(absl::string_view text) {
  while (!text.empty()) {
    const size_t size = Utf8SequenceSize(text);
    if (size == 0) {
      return false;
    }
    text.remove_prefix(size);
  }
  return true;
}

std::string TerminalText(absl::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const size_t size = Utf8SequenceSize(text);
    const uint8_t first = ByteAt(text, 0);
    const bool is_c1 = size == 2 && first == 0xC2 && ByteAt(text, 1) < 0xA0;
    if (size == 0 || is_c1 || first < 0x20 || first == 0x7F) {
      absl::StrAppendFormat(&shown, "\\x%02X", first);
      text.remove_prefix(1);
      continue;
    }
    if (first == '\\') {
      shown += '\\';
    }
    shown.append(text.data(), size);
    text.remove_prefix(size);
  }
  return shown;
}

std::string JsonString(absl::string_view text) {
  std::string json = "\"";
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      absl::StrAppendFormat(&json, "\\u%04x", byte);
    } else {
      json += c;
    }
  }
  return json + "\"";
}

std::string JsonBytes(absl::string_view name, absl::string_view bytes) {
  if (IsUtf8(bytes)) {
    return absl::StrCat("\"", name, "\":", JsonString(bytes));
  }
  return absl::StrCat("\"", name, "_base64\":\"", absl::Base64Escape(bytes),
                      "\"");
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
    // "%%" occurs in no name that was not cut.
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

}  // namespace quire
