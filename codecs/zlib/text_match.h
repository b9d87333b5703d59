// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_ZLIB_TEXT_MATCH_H_
#define QUIRE_CODECS_ZLIB_TEXT_MATCH_H_

#include <cstdint>

namespace quire {

// A match of an LZ77 parse: `size` bytes of text from `offset` on equal those
// that begin `distance` bytes earlier.
struct TextMatch {
  uint32_t offset = 0;
  uint32_t size = 0;
  uint32_t distance = 0;

  bool operator==(const TextMatch&) const = default;
};

}  // namespace quire

#endif  // QUIRE_CODECS_ZLIB_TEXT_MATCH_H_
