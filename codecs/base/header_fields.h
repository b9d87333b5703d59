// SPDX-License-Identifier: Apache-2.0
//
// Headers of lines NAME: VALUE up to an empty line, as in WARC records (ISO
// 28500, section 4) and HTTP messages (RFC 9112, section 5).
#ifndef QUIRE_CODECS_BASE_HEADER_FIELDS_H_
#define QUIRE_CODECS_BASE_HEADER_FIELDS_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"

namespace quire {

// All functions are thread-safe, accept lines that end with CR LF or LF alone,
// and read no byte twice.

// Returns the size of the header at the start of `bytes`, including the empty
// line; nullopt if `bytes` has no empty line.
std::optional<size_t> FindHeaderEnd(ByteView bytes);

// Returns the size of the empty lines at the start of `text`; at most
// kBlankSizeBytesMax. Some servers sent one before their status line.
inline constexpr size_t kBlankSizeBytesMax = 64;
size_t BlankLinesSize(absl::string_view text);

// Removes the first line from `rest`; returns it without its line end.
absl::string_view TakeHeaderLine(absl::string_view& rest);

struct HeaderField {
  // Borrowed from the header; empty for a line without a colon.
  absl::string_view name;
  // Without surrounding white space. Lines of a folded value, which start with
  // a space or tab, are joined by one space.
  std::string value;
};

// Removes the next field from `rest`; nullopt at the empty line or the end.
std::optional<HeaderField> TakeHeaderField(absl::string_view& rest);

}  // namespace quire

#endif  // QUIRE_CODECS_BASE_HEADER_FIELDS_H_
