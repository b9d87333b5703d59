// SPDX-License-Identifier: Apache-2.0
//
// JSON as the project prints it, by nlohmann-json.
#ifndef QUIRE_CODECS_BASE_JSON_TEXT_H_
#define QUIRE_CODECS_BASE_JSON_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"

#include "nlohmann/json_fwd.hpp"

namespace quire {

// Members stay in the order in which they were added.
using Json = nlohmann::ordered_json;

// On one line with kJsonOneLine, else with `indent` spaces a level.
inline constexpr int kJsonOneLine = -1;

// `value` as text without a line end. Strings may be any bytes: what is not
// UTF-8 becomes U+FFFD. DEL and C1 controls (U+0080 to U+009F), which JSON
// allows but terminals act on, are written as \u00NN. Numbers that are not
// finite become null. Thread-safe.
std::string JsonText(const Json& value, int indent = kJsonOneLine);

// The same of a string alone, with its quotes. Thread-safe.
std::string JsonString(absl::string_view text);

}  // namespace quire

#endif  // QUIRE_CODECS_BASE_JSON_TEXT_H_
