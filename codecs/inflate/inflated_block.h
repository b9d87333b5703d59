// SPDX-License-Identifier: Apache-2.0
//
// A block in which compressed members, for example gzip files or the streams of
// PDF, are replaced by their text, and how the block is made again of it.
#ifndef QUIRE_CODECS_INFLATE_INFLATED_BLOCK_H_
#define QUIRE_CODECS_INFLATE_INFLATED_BLOCK_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "codecs/block_codec.h"
#include "codecs/deflate/deflate_encoder.h"
#include "codecs/deflate/deflate_finder.h"
#include "codecs/deflate/deflate_recipe.h"

namespace quire {

// Shorter members stay as they are. Bytes, of the member and of its text.
inline constexpr size_t kInflatedMemberSizeMin = 64;
// Of a block with several members inflated, in bytes.
inline constexpr size_t kInflatedBlockSizeMax = kBlockSizeBytesMax;
// Of a block with one member. Its text is encoded, and decoded, in parts of
// kInflatedPartSize.
inline constexpr size_t kInflatedLargeSizeMax = size_t{6} << 20;
inline constexpr size_t kInflatedPartSize = kInflatedBlockSizeMax;
// What several members of one block may take to make again: the sum of their
// DeflateWorkMax(). Bounds the time that a block, whoever made it, takes; a
// block with one member has the bound of that.
inline constexpr uint64_t kInflatedBlockWorkMax = uint64_t{1} << 27;

struct InflatedMember {
  // In the block, where the member's stream begins.
  size_t offset = 0;
  DeflateRecipe recipe;
};

// What precedes the encoding of an inflated block.
struct InflatedHead {
  // In order of offset. They lie in the block and do not overlap.
  std::vector<InflatedMember> members;
  // Of the block with its members inflated.
  size_t text_size_bytes = 0;
  // Checksum64() of the block itself.
  uint64_t checksum = 0;
};

// Appends to `out`. REQUIRES: one member at least, and all as above.
void AppendInflatedHead(const InflatedHead& head, std::string& out);

// Takes the head of a block of `raw_size_bytes` off the front of `stored`, all
// but the number of members, which is `member_count`, to `head`, over what was
// there.
// Errors: DataLoss  malformed or truncated; members that do not lie in the
//                   block, or exceed one of the bounds above.
absl::Status TakeInflatedHead(ByteView& stored, uint64_t member_count,
                              size_t raw_size_bytes, InflatedHead& head);

// Makes the block again of its inflated text, whose pieces `source` gives: as
// many bytes in all as the head says, if it is asked for so many.
// REQUIRES: `head` is of a block of raw.size() bytes.
// Errors: DataLoss  not the block that the checksum is of; the contents of
//                   `raw` are then unspecified.
//         those of `source`.
absl::Status RecreateBlock(const InflatedHead& head,
                           DeflateEncoder::Source source,
                           DeflateEncoder& encoder, MutableByteView raw);

// Replaces the members of blocks by their text.
// Thread-compatible. Memory: at most 4 MiB, four times the longest text of a
// member that it inflates, and the inflated block.
class BlockInflater {
 public:
  // Members of more than `member_text_size_max` bytes of text stay as they are,
  // and of more than kInflatedLargeSizeMax.
  explicit BlockInflater(size_t member_text_size_max);

  // False if `block` has no members that may be inflated: then text() and
  // head() are those of the block before, or none. Members that reach over the
  // block's ends stay as they are.
  // REQUIRES: 0 < block.size() <= kBlockSizeBytesMax.
  bool Inflate(ByteView block);

  ByteView text() const { return text_; }

  const InflatedHead& head() const { return head_; }

 private:
  // Whether one more member may be inflated, by which the block's text, with
  // what follows the member, would have so many bytes.
  bool MayAdd(const DeflateRecipe& recipe, size_t text_size,
              uint64_t work_left) const;

  DeflateFinder finder_;
  InflatedHead head_;
  std::vector<uint8_t> text_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_INFLATE_INFLATED_BLOCK_H_
