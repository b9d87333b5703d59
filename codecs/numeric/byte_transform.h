// SPDX-License-Identifier: Apache-2.0
//
// Reversible rearrangements of arrays of numbers that put bytes of equal weight
// side by side, so that general codecs find repetitions. They are independent
// of byte order and of the offset of the first number.
#ifndef QUIRE_CODECS_NUMERIC_BYTE_TRANSFORM_H_
#define QUIRE_CODECS_NUMERIC_BYTE_TRANSFORM_H_

#include <cstddef>
#include <cstdint>

#include "codecs/base/bytes.h"

namespace quire {

// Stored on disk: never renumber.
enum class TransformKind : uint8_t {
  kNone = 0,
  // Planes: byte 0 of each number, then byte 1, and so on.
  kShuffle = 1,
  // kShuffle, then each byte of a plane less the one before it in the plane.
  kShuffleDelta = 2,
  // kShuffle, then each plane's bits: bit 0 of each byte, then bit 1, and so
  // on, eight bits in a byte, the first the lowest.
  kBitShuffle = 3,
};

// Rearrangement of numbers of 2, 4 or 8 bytes. A remainder of less than eight
// numbers at the end stays unchanged.
struct ByteTransform {
  TransformKind kind = TransformKind::kNone;
  // Bytes of a number; 1 for kNone.
  uint8_t width = 1;

  bool operator==(const ByteTransform&) const = default;
};

// `work` is working memory; its contents are unspecified afterwards.
// REQUIRES: `to` and `work` have from.size() bytes; none of the three overlaps
//           another; width is 2, 4 or 8, or 1 for kNone.
void ApplyTransform(const ByteTransform& transform, ByteView from,
                    MutableByteView work, MutableByteView to);

// The reverse. Uses `from` as working memory: its bytes change.
// REQUIRES: as ApplyTransform(), without `work`.
void UndoTransform(const ByteTransform& transform, MutableByteView from,
                   MutableByteView to);

}  // namespace quire

#endif  // QUIRE_CODECS_NUMERIC_BYTE_TRANSFORM_H_
