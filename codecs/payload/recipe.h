// SPDX-License-Identifier: Apache-2.0
//
// The recipe of a block whose compressed members, for example gzip files or the
// streams of PDF, are stored as their text: where each member was and how it is
// reproduced from its text. CODECS.md states the bytes.
#ifndef QUIRE_CODECS_PAYLOAD_RECIPE_H_
#define QUIRE_CODECS_PAYLOAD_RECIPE_H_

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
// Limit on the inflated text of a block with several members, in bytes.
inline constexpr size_t kInflatedBlockSizeMax = kBlockSizeBytesMax;
// The same for a block with one member.
inline constexpr size_t kInflatedLargeSizeMax = size_t{6} << 20;
// Limit on the work of reproducing several members of one block: the sum of
// their DeflateWorkMax(). Bounds the decoding time of a block from any source.
// The bound of a block with one member is that member's DeflateWorkMax().
inline constexpr uint64_t kInflatedBlockWorkMax = uint64_t{1} << 27;

struct InflatedMember {
  // Offset in the block of the first byte of the member's stream.
  size_t offset = 0;
  // Offset in the inflated text of the member's text.
  size_t text_offset = 0;
  DeflateRecipe recipe;
  // The low 32 bits of Checksum64() of the member.
  uint32_t checksum = 0;
};

struct Recipe {
  // In order of offset. They lie in the block and do not overlap.
  std::vector<InflatedMember> members;
  // Size of the block with its members inflated.
  size_t text_size_bytes = 0;
};

// Appends to `out`. REQUIRES: at least one member, and all as above.
void AppendRecipe(const Recipe& recipe, std::string& out);

// Takes the recipe of a block of `raw_size_bytes` off the front of `stored`.
// Replaces the contents of `recipe`.
// Errors: DataLoss  malformed or truncated; members that do not lie in the
//                   block, or exceed one of the bounds above.
absl::Status TakeRecipe(ByteView& stored, size_t raw_size_bytes,
                        Recipe& recipe);

// Reproduces a member from its text, whose pieces `source` returns.
// REQUIRES: out.size() == member.recipe.member_size.
// Errors: DataLoss  the result does not have the member's checksum; the
//                   contents of `out` are then unspecified.
//         those of `source`.
absl::Status RecreateMember(const InflatedMember& member,
                            DeflateEncoder::Source source,
                            DeflateEncoder& encoder, MutableByteView out);

// Replaces the members of blocks by their text.
// Thread-compatible. Memory: at most 4 MiB, four times the longest text of a
// member that it inflates, and the inflated block.
class BlockInflater {
 public:
  // Members of more than `member_text_size_max` bytes of text stay as they are,
  // and of more than kInflatedLargeSizeMax.
  explicit BlockInflater(size_t member_text_size_max);

  // False if `block` has no members that may be inflated: then text() and
  // recipe() are those of the block before, or none. Members that reach over
  // the block's ends stay as they are. REQUIRES: 0 < block.size() <=
  // kBlockSizeBytesMax.
  bool Inflate(ByteView block);

  ByteView text() const { return text_; }

  const Recipe& recipe() const { return recipe_; }

 private:
  // Whether one more member may be inflated, by which the block's text, with
  // what follows the member, would have so many bytes.
  bool MayAdd(const DeflateRecipe& recipe, size_t text_size,
              uint64_t work_left) const;

  DeflateFinder finder_;
  Recipe recipe_;
  std::vector<uint8_t> text_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_PAYLOAD_RECIPE_H_
