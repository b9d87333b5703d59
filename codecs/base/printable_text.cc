// SPDX-License-Identifier: Apache-2.0
#include "codecs/base/printable_text.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace quire {
namespace {

uint8_t ByteAt(absl::string_view text, size_t i) {
  return static_cast<uint8_t>(text[i]);
}

// Appends `text`; terminal controls become \xNN, and each character of
// `escaped` gets a backslash.
void AppendPrintable(absl::string_view text, absl::string_view escaped,
                     std::string& out) {
  while (!text.empty()) {
    const size_t size = Utf8SequenceSize(text);
    const uint8_t first = ByteAt(text, 0);
    const bool is_c1 = size == 2 && first == 0xC2 && ByteAt(text, 1) < 0xA0;
    if (size == 0 || is_c1 || first < 0x20 || first == 0x7F) {
      absl::StrAppendFormat(&out, "\\x%02X", first);
      text.remove_prefix(1);
      continue;
    }
    if (escaped.find(text[0]) != absl::string_view::npos) {
      out += '\\';
    }
    out.append(text.data(), size);
    text.remove_prefix(size);
  }
}

}  // namespace

size_t Utf8SequenceSize(absl::string_view text) {
  const uint8_t first = ByteAt(text, 0);
  if (first < 0x80) {
    return 1;
  }
  // The ranges of the Unicode standard, table 3-7.
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

std::string PrintableText(absl::string_view text) {
  std::string out;
  AppendPrintable(text, "\\", out);
  return out;
}

std::string PrintableMessage(absl::string_view message) {
  std::string out;
  AppendPrintable(message, "", out);
  return out;
}

std::string QuotedText(absl::string_view text, size_t size_bytes_max) {
  absl::string_view shown = text.substr(0, size_bytes_max);
  // Do not cut a character that the text has completely.
  for (size_t size = shown.size();
       shown.size() < text.size() && size > 0 && shown.size() - size < 4;
       --size) {
    if ((ByteAt(text, size) & 0xC0) != 0x80) {
      shown = text.substr(0, size);
      break;
    }
  }
  std::string out = "\"";
  AppendPrintable(shown, "\\\"", out);
  return absl::StrCat(out, shown.size() < text.size() ? "\"..." : "\"");
}

}  // namespace quire
