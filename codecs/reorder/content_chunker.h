// SPDX-License-Identifier: Apache-2.0
//
// Divides a text by its contents, so that equal ranges of two texts are divided
// alike at any offset. After Xia et al., "FastCDC: a Fast and Efficient
// Content-Defined Chunking Approach for Data Deduplication" (USENIX ATC 2016):
// gear hash, normalised chunk sizes, bytes below the minimum size skipped.
#ifndef QUIRE_CODECS_REORDER_CONTENT_CHUNKER_H_
#define QUIRE_CODECS_REORDER_CONTENT_CHUNKER_H_

#include <cstddef>
#include <cstdint>

#include "codecs/base/bytes.h"

namespace quire {

inline constexpr uint32_t kChunkSizeBytesMin = 1 << 10;
inline constexpr uint32_t kChunkSizeBytesMax = 32 << 10;

// Pure, thread-safe. The division of a text never changes: archives depend on
// it.
class ContentChunker {
 public:
  // `average_size_bytes` is the approximate average for text without
  // repetitions. REQUIRES: a power of two, kChunkSizeBytesMin to
  // kChunkSizeBytesMax.
  explicit ContentChunker(uint32_t average_size_bytes);

  // Minimum size of every chunk except the last of a text.
  size_t size_bytes_min() const { return average_ / 4; }

  // Maximum size of a chunk.
  size_t size_bytes_max() const { return average_ * 4; }

  // Returns the size of the first chunk of `text`. If the text continues after
  // the view, the view must have size_bytes_max() bytes. REQUIRES:
  // !text.empty().
  size_t Next(ByteView text) const;

 private:
  const size_t average_;
  // Bits of the hash that are zero where a chunk ends: before it has the
  // average size, and after.
  const uint64_t early_mask_;
  const uint64_t late_mask_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_REORDER_CONTENT_CHUNKER_H_
