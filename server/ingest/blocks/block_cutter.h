// SPDX-License-Identifier: GPL-3.0-or-later
//
// Divides a text into blocks, so that no block ends inside a compressed member
// that is to be inflated.
#ifndef QUIRE_SERVER_INGEST_BLOCK_CUTTER_H_
#define QUIRE_SERVER_INGEST_BLOCK_CUTTER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace quire {

// Smallest block that is cut around a member, except the last of a segment.
inline constexpr size_t kCutBlockSizeMin = 512;

// A compressed member of a text, with its header. The header identifies it, so
// both must be in one block. Bytes.
struct MemberPlace {
  // Offset of the header in the text.
  uint64_t offset = 0;
  // Size of both.
  uint32_t size = 0;
  // Size of both, with the member inflated.
  uint32_t text_size = 0;
  uint32_t header_size = 0;
};

// A block has `block_size` bytes, unless that would divide a member, or make
// its inflated text longer than four times that. It then ends before the
// member, or after it if hardly any text precedes it. A member larger than a
// block has its own block, up to the limits of kBlockSizeBytesMax and
// kInflatedLargeSizeMax. Members that fit no block are divided.
//
// The result depends only on the members and on the block's start: text that
// changes after the search for members is still divided into valid blocks.
// Thread-compatible.
class BlockCutter {
 public:
  // `members` are in order of offset and do not overlap.
  // REQUIRES: kBlockSizeBytesMin <= block_size <= kBlockSizeBytesMax.
  BlockCutter(std::vector<MemberPlace> members, size_t block_size);

  // Returns the size of the block that begins at `start`, if the text is long
  // enough: kCutBlockSizeMin to kBlockSizeBytesMax.
  // REQUIRES: start is not less than in the previous call.
  size_t SizeAt(uint64_t start);

 private:
  const std::vector<MemberPlace> members_;
  const size_t block_size_;
  // First member that begins in the last block or later.
  size_t next_ = 0;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_BLOCK_CUTTER_H_
