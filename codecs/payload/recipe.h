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

#include "codecs/base/bytes.h"
#include "codecs/block_codec.h"
#include "codecs/deflate/deflate_encoder.h"
#include "codecs/deflate/deflate_finder.h"
#include "codecs/deflate/deflate_recipe.h"

namespace quire {

// Minimum size of an inflated member, and of its text, in bytes. Shorter
// members stay unchanged.
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

// Parses the recipe of a block of `raw_size_bytes`, and removes it from the
// front of `stored`. Replaces the contents of `recipe`.
// Errors: DataLoss  malformed or truncated; members that do not lie in the
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
  // Members with more text than `member_text_size_max` bytes, or than
  // kInflatedLargeSizeMax, stay unchanged. `known` is as in
  // DeflateFinderOptions.
  explicit BlockInflater(size_t member_text_size_max,
                         const KnownDeflateMembers* known = nullptr);

  // False if `block` has no members to inflate; text() and recipe() are then
  // those of an earlier block, or empty. Members that cross the block's ends
  // stay unchanged.
  // REQUIRES: 0 < block.size() <= kBlockSizeBytesMax.
  bool Inflate(ByteView block);

  ByteView text() const { return text_; }

  const Recipe& recipe() const { return recipe_; }

  // Returns the size of the inflated members, in bytes.
  size_t MemberBytes() const;

 private:
  // True if one more member may be inflated, which makes the inflated block,
  // with the bytes after the member, `text_size` bytes long.
  bool MayAdd(const DeflateRecipe& recipe, size_t text_size,
              uint64_t work_left) const;

  DeflateFinder finder_;
  Recipe recipe_;
  std::vector<uint8_t> text_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_PAYLOAD_RECIPE_H_
