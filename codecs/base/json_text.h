// SPDX-License-Identifier: Apache-2.0
//
// The project's JSON output, by nlohmann-json.
#ifndef QUIRE_CODECS_BASE_JSON_TEXT_H_
#define QUIRE_CODECS_BASE_JSON_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"

#include "nlohmann/json_fwd.hpp"

namespace quire {

// Members keep the order of insertion.
using Json = nlohmann::ordered_json;

// One line with kJsonOneLine, otherwise `indent` spaces per level.
inline constexpr int kJsonOneLine = -1;

// Returns `value` as text without a line end. Strings may have any bytes: those
// that are not UTF-8 become U+FFFD. DEL and C1 controls (U+0080 to U+009F),
// which JSON allows but terminals interpret, become \u00NN. Numbers that are
// not finite become null. Thread-safe.
std::string JsonText(const Json& value, int indent = kJsonOneLine);

// The same for a string alone, with its quotes. Thread-safe.
std::string JsonString(absl::string_view text);

}  // namespace quire

#endif  // QUIRE_CODECS_BASE_JSON_TEXT_H_
