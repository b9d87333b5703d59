// SPDX-License-Identifier: Apache-2.0
//
// Bytes from elsewhere, made fit for a terminal, for JSON and for file names.
#ifndef QUIRE_CLIENT_CLI_SHOWN_TEXT_H_
#define QUIRE_CLIENT_CLI_SHOWN_TEXT_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace quire {

// Whether `text` is well-formed UTF-8: no overlong forms, no surrogates,
// nothing past U+10FFFF. Thread-safe.
bool IsUtf8(absl::string_view text);

// `text` with control characters, DEL, C1 controls and bytes that are not UTF-8
// as \xNN, and backslashes doubled: nothing in it moves a cursor or changes a
// colour. Thread-safe.
std::string TerminalText(absl::string_view text);

// A JSON string with its quotes. REQUIRES: IsUtf8(text). Thread-safe.
std::string JsonString(absl::string_view text);

// A member of a JSON object: "NAME":"text" or, for bytes that are not UTF-8,
// "NAME_base64":"...". Thread-safe.
std::string JsonBytes(absl::string_view name, absl::string_view bytes);

// A file name for any bytes: never empty, no slash, no leading dot, at most 200
// bytes. Letters, digits, '.', '_' and '-' stay, others become %XX; what gets
// too long is cut and ends with a hash of the whole. Different bytes give
// different names (but for a collision of 64-bit hashes). Thread-safe.
std::string SafeFileName(absl::string_view bytes);

// "2026-11-21T10:00:00.123Z" of milliseconds since 1970. Thread-safe.
std::string FormatTimeMs(int64_t time_ms);

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_SHOWN_TEXT_H_
