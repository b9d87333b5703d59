// SPDX-License-Identifier: GPL-3.0-or-later
//
// Where a text is divided into blocks, so that no block ends inside of a
// compressed member that is to be inflated.
#ifndef QUIRE_SERVER_INGEST_BLOCK_CUTTER_H_
#define QUIRE_SERVER_INGEST_BLOCK_CUTTER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace quire {

// Smallest block that is cut around a member, but for the last of a segment.
inline constexpr size_t kCutBlockSizeMin = 512;

// A compressed member of a text, with its header: it is found by that, so they
// have to be in one block. Bytes.
struct MemberPlace {
  // In the text, of the header.
  uint64_t offset = 0;
  // Of both.
  uint32_t size = 0;
  // Of both, with the member inflated.
  uint32_t text_size = 0;
  uint32_t header_size = 0;
};

// A block has `block_size` bytes, unless that would divide a member, or make
// its inflated text longer than four times that. Then it ends before the
// member; or with it, if hardly anything is before it. A member that is larger
// than a block has one of its own, up to the limits of kBlockSizeBytesMax and
// kInflatedLargeSizeMax. Members that fit no block are divided.
//
// What it says depends on the members and on where the block begins, no more:
// text that changes after the members were looked for is still divided into
// blocks that the format allows.
// Thread-compatible.
class BlockCutter {
 public:
  // `members` are in order of offset and do not overlap.
  // REQUIRES: kBlockSizeBytesMin <= block_size <= kBlockSizeBytesMax.
  BlockCutter(std::vector<MemberPlace> members, size_t block_size);

  // The size of the block that begins at `start`, if the text goes on for so
  // long: kCutBlockSizeMin to kBlockSizeBytesMax.
  // REQUIRES: start is not less than in the call before.
  size_t SizeAt(uint64_t start);

 private:
  const std::vector<MemberPlace> members_;
  const size_t block_size_;
  // The first that does not begin before the last block.
  size_t next_ = 0;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_BLOCK_CUTTER_H_
