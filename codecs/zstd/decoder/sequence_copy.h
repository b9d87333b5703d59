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
  // In literal_size: the match is not to be copied in wide steps, because it is
  // too near to what it is copied to or to the dictionary's end.
  static constexpr uint32_t kCarefully = uint32_t{1} << 31;

  const uint8_t* match = nullptr;
  uint32_t literal_size = 0;
  uint32_t match_size = 0;
};

// Wide steps may read so many bytes more than they need, and write as many,
// which are overwritten by what follows.
inline constexpr size_t kCopyExcess = 32;
// The least distance of a match from what it is copied to for wide steps.
inline constexpr size_t kCopyDistanceMin = 16;

// Where copies come from and go to.
struct CopySpace {
  ByteView dictionary;
  // The whole text, of which a prefix is there, and the output buffer. A match
  // that runs over the dictionary's end goes on at the start of the output
  // buffer.
  MutableByteView output;
};

// Appends `sequences` to the text, of which output.first(size) is there, and
// moves `literals` behind those it took; returns the text's new size.
// REQUIRES: the result fits the output buffer; kCopyExcess readable bytes
// behind the
//           literals; each match is in the dictionary or the text before it.
size_t AppendSequences(std::span<const CopySequence> sequences,
                       const CopySpace& space, size_t size,
                       const uint8_t*& literals);

}  // namespace quire

#endif  // QUIRE_CODECS_ZSTD_DECODER_SEQUENCE_COPY_H_
