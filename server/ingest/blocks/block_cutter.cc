// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/blocks/block_cutter.h"

#include <algorithm>
#include <utility>

#include "codecs/block_codec.h"
#include "codecs/payload/recipe.h"

namespace quire {
namespace {

// Limit on a block's inflated text, in block sizes: a read of any part of the
// block may have to reproduce it.
constexpr size_t kTextSizeFactor = 4;
// Text below this part of the block size gets no separate block.
constexpr size_t kShortFraction = 8;

}  // namespace

BlockCutter::BlockCutter(std::vector<MemberPlace> members, size_t block_size)
    : members_(std::move(members)), block_size_(block_size) {}

size_t BlockCutter::SizeAt(uint64_t start) {
  while (next_ < members_.size() && members_[next_].offset < start) {
    ++next_;
  }
  const size_t text_size_max =
      std::min(kTextSizeFactor * block_size_, kInflatedBlockSizeMax);
  // Growth of the block by inflating the members so far.
  size_t growth = 0;
  for (size_t i = next_; i < members_.size(); ++i) {
    const MemberPlace& member = members_[i];
    if (member.offset - start >= block_size_) {
      break;
    }
    const auto before = static_cast<size_t>(member.offset - start);
    const size_t end = before + member.size;
    const size_t text_size = before + growth + member.text_size;
    if (end <= block_size_ && text_size <= text_size_max) {
      growth += member.text_size - std::min(member.size, member.text_size);
      continue;
    }
    // The only member of a block may have a larger text.
    const bool is_large = text_size > kInflatedBlockSizeMax;
    const bool fits = end >= kCutBlockSizeMin && end <= kBlockSizeBytesMax &&
                      text_size <= kInflatedLargeSizeMax;
    const bool is_far =
        before >= kCutBlockSizeMin &&
        (!fits || is_large || before >= block_size_ / kShortFraction);
    if (is_far) {
      return before;
    }
    if (fits) {
      return end;
    }
    // Neither: the member moves to the block that it ends in, or is divided.
  }
  return std::min(block_size_, kInflatedBlockSizeMax - growth);
}

}  // namespace quire
