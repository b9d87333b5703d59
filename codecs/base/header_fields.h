// SPDX-License-Identifier: Apache-2.0
//
// Headers of lines NAME: VALUE up to an empty line, as WARC records (ISO 28500,
// section 4) and HTTP messages (RFC 9112, section 5) have them.
#ifndef QUIRE_CODECS_BASE_HEADER_FIELDS_H_
#define QUIRE_CODECS_BASE_HEADER_FIELDS_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"

namespace quire {

// All functions are thread-safe, take lines that end with CR LF or LF alone,
// and read no byte twice.

// The size of the header that `bytes` starts with, up to and with the empty
// line that ends it; nullopt if there is no empty line in `bytes`.
std::optional<size_t> FindHeaderEnd(ByteView bytes);

// Takes the first line off `rest`, without its line end.
absl::string_view TakeHeaderLine(absl::string_view& rest);

struct HeaderField {
  // Borrowed from the header; empty for a line without a colon.
  absl::string_view name;
  // Without the white space around it. Lines of a folded value, which start
  // with a space or tab, are joined by one space.
  std::string value;
};

// Takes the next field off `rest`; nullopt at the empty line or the end.
std::optional<HeaderField> TakeHeaderField(absl::string_view& rest);

}  // namespace quire

#endif  // QUIRE_CODECS_BASE_HEADER_FIELDS_H_
