// SPDX-License-Identifier: Apache-2.0
//
// Makes foreign bytes safe for terminals and logs. All printed text from
// outside the project passes one of these; JSON passes json_text.h.
#ifndef QUIRE_CODECS_BASE_PRINTABLE_TEXT_H_
#define QUIRE_CODECS_BASE_PRINTABLE_TEXT_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace quire {

// Returns the length of the well-formed UTF-8 sequence at the start of `text`
// (RFC 3629: no overlong forms, no surrogates, nothing past U+10FFFF); 0 if
// there is none. REQUIRES: !text.empty(). Thread-safe.
size_t Utf8SequenceSize(absl::string_view text);

// True if all of `text` is well-formed UTF-8. Thread-safe.
bool IsUtf8(absl::string_view text);

// Returns `text` with control characters, DEL, C1 controls (U+0080 to U+009F)
// and bytes that are not UTF-8 as \xNN, and with doubled backslashes: it moves
// no cursor and changes no colour, and different bytes give different texts.
// Thread-safe.
std::string PrintableText(absl::string_view text);

// The same for a complete message: backslashes stay single, so that escaped
// parts are not escaped again. Line ends are escaped too.
// Thread-safe.
std::string PrintableMessage(absl::string_view message);

// Text of an id or a name for messages: PrintableText() of its first
// `size_bytes_max` bytes, in double quotes, with inner quotes as \", followed
// by "..." if it is longer. Thread-safe.
std::string QuotedText(absl::string_view text, size_t size_bytes_max = 200);

}  // namespace quire

#endif  // QUIRE_CODECS_BASE_PRINTABLE_TEXT_H_
