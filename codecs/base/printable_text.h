// SPDX-License-Identifier: Apache-2.0
//
// Bytes from elsewhere, made fit for terminals and logs. Whatever the project
// prints that it did not write itself goes through one of these; JSON goes
// through json_text.h.
#ifndef QUIRE_CODECS_BASE_PRINTABLE_TEXT_H_
#define QUIRE_CODECS_BASE_PRINTABLE_TEXT_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace quire {

// The length of the well-formed UTF-8 sequence that `text` starts with
// (RFC 3629: no overlong forms, no surrogates, nothing past U+10FFFF); 0 if
// there is none. REQUIRES: !text.empty(). Thread-safe.
size_t Utf8SequenceSize(absl::string_view text);

// Whether all of `text` is well-formed UTF-8. Thread-safe.
bool IsUtf8(absl::string_view text);

// The same text where it is UTF-8; each byte that is part of no sequence
// becomes U+FFFD. Thread-safe.
std::string ToUtf8(absl::string_view bytes);

// `text` with control characters, DEL, C1 controls (U+0080 to U+009F) and bytes
// that are not UTF-8 as \xNN, and backslashes doubled: nothing in it moves a
// cursor or changes a colour, and different bytes give different texts.
// Thread-safe.
std::string PrintableText(absl::string_view text);

// The same for a message that is complete: backslashes stay single, so what was
// escaped in one of its parts is not escaped again. Line ends are escaped too.
// Thread-safe.
std::string PrintableMessage(absl::string_view message);

// What messages show of an id or a name: PrintableText() of its first
// `size_bytes_max` bytes, in double quotes, those in it as \", with "..."
// behind the quotes where there is more. Thread-safe.
std::string QuotedText(absl::string_view text, size_t size_bytes_max = 200);

}  // namespace quire

#endif  // QUIRE_CODECS_BASE_PRINTABLE_TEXT_H_
