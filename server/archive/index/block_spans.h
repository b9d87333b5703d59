// SPDX-License-Identifier: GPL-3.0-or-later
//
// Start and size of the text of a segment's blocks.
#ifndef QUIRE_SERVER_ARCHIVE_INDEX_BLOCK_SPANS_H_
#define QUIRE_SERVER_ARCHIVE_INDEX_BLOCK_SPANS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "server/archive/index/elias_fano.h"

namespace quire {

// Consecutive blocks with text of equal size.
struct BlockSpan {
  uint64_t block_count = 0;
  // Size of the text of each block.
  uint64_t size_bytes = 0;

  bool operator==(const BlockSpan&) const = default;
};

// Adds a block of `size_bytes` of text after `spans`.
void AppendBlock(uint64_t size_bytes, std::vector<BlockSpan>& spans);

// Returns the section of `spans` (FORMAT.md, "Block spans").
std::string EncodeBlockSpans(std::span<const BlockSpan> spans);

// Offsets are in the segment's stored text. Few spans are searched, and a
// division finds the block. If most blocks differ from their neighbours, it
// holds the start of each block (33 bits for blocks of 64 KiB). Movable.
// Thread-safe.
class BlockSpans {
 public:
  // No blocks.
  BlockSpans() = default;

  // REQUIRES: counts and sizes are at least 1, and no sum is above 2^62.
  explicit BlockSpans(const std::vector<BlockSpan>& spans);

  // Properties of the segment in manifest and trailer.
  struct Expected {
    uint64_t block_count = 0;
    // Size of the stored text.
    uint64_t size_bytes = 0;
    uint64_t span_count = 0;
    uint32_t block_size_bytes_max = 0;
  };

  // `section` is untrusted. Needs 16 bytes per span temporarily.
  // REQUIRES: expected.span_count <= size of the section.
  // Errors: DataLoss  not the spans expected.
  static absl::StatusOr<BlockSpans> Parse(ByteView section,
                                          const Expected& expected);

  uint64_t block_count() const { return block_count_; }

  // Size of the stored text.
  uint64_t size_bytes() const { return size_bytes_; }

  // Returns the block that contains the byte. REQUIRES: offset < size of the
  // stored text.
  uint64_t BlockAt(uint64_t offset) const;

  // REQUIRES for both: block_index < block_count().
  uint64_t StartOf(uint64_t block_index) const;
  uint32_t SizeOf(uint64_t block_index) const;

  uint64_t MemoryBytes() const;

  // Upper bound on MemoryBytes().
  static uint64_t EstimateBytes(const Expected& expected);

  // Memory of Parse() in addition to the result and the section.
  static uint64_t EstimateParsingBytes(uint64_t span_count) {
    return span_count * sizeof(BlockSpan);
  }

 private:
  // A span with the sums of all before it.
  struct Placed {
    uint64_t first_block = 0;
    uint64_t start = 0;
    uint64_t size_bytes = 0;
  };

  static bool AreFew(uint64_t span_count, uint64_t block_count);
  const Placed& SpanOf(uint64_t block_index) const;

  uint64_t block_count_ = 0;
  uint64_t size_bytes_ = 0;
  // Empty if `starts_` is used.
  std::vector<Placed> spans_;
  // Start of each block, and the end of the last.
  EliasFano starts_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_ARCHIVE_INDEX_BLOCK_SPANS_H_
