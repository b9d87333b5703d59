// SPDX-License-Identifier: Apache-2.0
//
// Divides a text where its contents say so, so that equal stretches of two
// texts are divided alike wherever they stand. After Xia et al., "FastCDC: a
// Fast and Efficient Content-Defined Chunking Approach for Data Deduplication"
// (USENIX ATC 2016): gear hash, normalised chunk sizes, no look at the bytes
// below the least size.
#ifndef QUIRE_CODECS_REORDER_CONTENT_CHUNKER_H_
#define QUIRE_CODECS_REORDER_CONTENT_CHUNKER_H_

#include <cstddef>
#include <cstdint>

#include "codecs/base/bytes.h"

namespace quire {

inline constexpr uint32_t kChunkSizeBytesMin = 1 << 10;
inline constexpr uint32_t kChunkSizeBytesMax = 32 << 10;

// Pure, thread-safe. What it does with a text never changes: archives depend on
// it.
class ContentChunker {
 public:
  // `average_size_bytes` is what chunks of text that does not repeat have,
  // about. REQUIRES: a power of two, kChunkSizeBytesMin to kChunkSizeBytesMax.
  explicit ContentChunker(uint32_t average_size_bytes);

  // Every chunk but the last of a text has at least this size.
  size_t size_bytes_min() const { return average_ / 4; }

  // No chunk is larger.
  size_t size_bytes_max() const { return average_ * 4; }

  // The size of the first chunk of `text`, which goes on beyond the view only
  // if that holds size_bytes_max(). REQUIRES: !text.empty().
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
