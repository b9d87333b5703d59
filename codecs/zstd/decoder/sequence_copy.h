// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_ZSTD_DECODER_SEQUENCE_COPY_H_
#define QUIRE_CODECS_ZSTD_DECODER_SEQUENCE_COPY_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "codecs/base/bytes.h"

namespace quire {

// A step of a decoder: append the next literal_size literals, then a match.
struct CopySequence {
  // Set in literal_size if the match must not be copied in wide steps: it is
  // too near to its target or to the dictionary's end.
  static constexpr uint32_t kCarefully = uint32_t{1} << 31;

  const uint8_t* match = nullptr;
  uint32_t literal_size = 0;
  uint32_t match_size = 0;
};

// Excess bytes that wide steps may read, and write before they are overwritten.
inline constexpr size_t kCopyExcess = 32;
// Minimum distance of a match from its target for wide steps.
inline constexpr size_t kCopyDistanceMin = 16;

// Sources and target of copies.
struct CopySpace {
  ByteView dictionary;
  // The output buffer; a prefix of it is the text so far. A match that crosses
  // the dictionary's end continues at the start of this buffer.
  MutableByteView output;
};

// Appends `sequences` to the text output.first(size) and advances `literals`
// past those used; returns the text's new size.
// REQUIRES: the result fits the output buffer; kCopyExcess readable bytes
// follow the literals; each match is in the dictionary or the text before it.
size_t AppendSequences(std::span<const CopySequence> sequences,
                       const CopySpace& space, size_t size,
                       const uint8_t*& literals);

}  // namespace quire

#endif  // QUIRE_CODECS_ZSTD_DECODER_SEQUENCE_COPY_H_
