// SPDX-License-Identifier: Apache-2.0
//
// Views of bytes, and conversions from and to text.
#ifndef QUIRE_CODECS_BASE_BYTES_H_
#define QUIRE_CODECS_BASE_BYTES_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/strings/string_view.h"

namespace quire {

// Views never own. Unless a declaration says otherwise, they are used only
// during the call.
using ByteView = std::span<const uint8_t>;
using MutableByteView = std::span<uint8_t>;

// The same bytes as `text`, which must outlive the view.
inline ByteView AsBytes(absl::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// The same bytes as `bytes`, which must outlive the view.
inline absl::string_view AsText(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline MutableByteView AsMutableBytes(std::string& text) {
  return {reinterpret_cast<uint8_t*>(text.data()), text.size()};
}

}  // namespace quire

#endif  // QUIRE_CODECS_BASE_BYTES_H_
