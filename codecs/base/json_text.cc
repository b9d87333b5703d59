// SPDX-License-Identifier: Apache-2.0
#include "codecs/base/json_text.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/str_format.h"

#include "nlohmann/json.hpp"

namespace quire {
namespace {

// JSON is ASCII outside its strings, so all replaced characters are inside one.
// REQUIRES: `json` is UTF-8.
std::string WithoutTerminalControls(std::string json) {
  std::string out;
  size_t done = 0;
  for (size_t i = 0; i < json.size(); ++i) {
    const auto byte = static_cast<uint8_t>(json[i]);
    const bool is_c1 = byte == 0xC2 && static_cast<uint8_t>(json[i + 1]) < 0xA0;
    if (!is_c1 && byte != 0x7F) {
      continue;
    }
    out.append(json, done, i - done);
    i += is_c1 ? 1 : 0;
    absl::StrAppendFormat(&out, "\\u%04x", static_cast<uint8_t>(json[i]));
    done = i + 1;
  }
  if (done == 0) {
    return json;
  }
  return out.append(json, done);
}

}  // namespace

std::string JsonText(const Json& value, int indent) {
  return WithoutTerminalControls(value.dump(indent, ' ', /*ensure_ascii=*/false,
                                            Json::error_handler_t::replace));
}

std::string JsonString(absl::string_view text) {
  return JsonText(Json(std::string(text)));
}

}  // namespace quire
