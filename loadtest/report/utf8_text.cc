// SPDX-License-Identifier: Apache-2.0
#include "loadtest/report/utf8_text.h"

#include <cstddef>
#include <cstdint>

namespace quire {
namespace {

uint8_t ByteAt(absl::string_view bytes, size_t index) {
  return static_cast<uint8_t>(bytes[index]);
}

// Of the character at the front; 0 if there is none.
size_t CharacterSize(absl::string_view bytes) {
  const uint8_t lead = ByteAt(bytes, 0);
  if (lead < 0x80) {
    return 1;
  }
  const size_t size = lead >= 0xC2 && lead < 0xE0   ? 2
                      : lead >= 0xE0 && lead < 0xF0 ? 3
                      : lead >= 0xF0 && lead < 0xF5 ? 4
                                                    : 0;
  if (size == 0 || bytes.size() < size) {
    return 0;
  }
  for (size_t i = 1; i < size; ++i) {
    if ((ByteAt(bytes, i) & 0xC0) != 0x80) {
      return 0;
    }
  }
  // Overlong forms, surrogates, and what is past U+10FFFF.
  const uint8_t second = ByteAt(bytes, 1);
  const bool is_wrong =
      (lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) ||
      (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F);
  return is_wrong ? 0 : size;
}

}  // namespace

std::string ToUtf8(absl::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const size_t size = CharacterSize(bytes);
    if (size == 0) {
      text += "\xEF\xBF\xBD";
      bytes.remove_prefix(1);
    } else {
      text.append(bytes.data(), size);
      bytes.remove_prefix(size);
    }
  }
  return text;
}

}  // namespace quire
