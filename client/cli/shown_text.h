// SPDX-License-Identifier: Apache-2.0
//
// Documents and bytes as JSON, and bytes as file names; for terminals see
// codecs/base/printable_text.h.
#ifndef QUIRE_CLIENT_CLI_SHOWN_TEXT_H_
#define QUIRE_CLIENT_CLI_SHOWN_TEXT_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include "proto/quire/v1/archive.pb.h"

namespace quire {

// Returns a member of a JSON object: "NAME":"text" or, for bytes that are not
// UTF-8, "NAME_base64":"...". Thread-safe.
std::string JsonBytes(absl::string_view name, absl::string_view bytes);

// Returns the members of a JSON object that describes `document`, without
// braces, separated by commas. Thread-safe.
std::string JsonDocument(const v1::Document& document);

// Returns the member "fields" of a JSON object: an object of the values of the
// first of `names`, which Document.fields begins with. Times are text of RFC
// 3339; floats that JSON has not are "NaN", "Infinity" and "-Infinity".
// Thread-safe.
std::string JsonFields(absl::Span<const std::string> names,
                       const v1::Document& document);

// Returns a field for a line of text: strings as they are for PrintableText(),
// null as "-", others as filters write them. Thread-safe.
std::string FieldText(const v1::FieldValue& field);

// Returns "string", "integer", ... Thread-safe.
std::string FieldTypeText(v1::FieldType type);

// Returns a file name for any bytes: never empty, no slash, no leading dot, at
// most 200 bytes. Letters, digits, '.', '_' and '-' stay, others become %XX.
// Longer names are truncated and end with a hash of the whole. Different bytes
// give different names, except for collisions of 64-bit hashes. Thread-safe.
std::string SafeFileName(absl::string_view bytes);

// Returns milliseconds since 1970 as "2026-11-21T10:00:00.123Z". Thread-safe.
std::string FormatTimeMs(int64_t time_ms);

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_SHOWN_TEXT_H_
