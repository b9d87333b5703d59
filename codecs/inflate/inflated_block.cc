// SPDX-License-Identifier: Apache-2.0
#include "codecs/inflate/inflated_block.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

#include "codecs/base/check.h"
#include "codecs/base/checksum.h"
#include "codecs/base/endian.h"
#include "codecs/base/status_macros.h"
#include "codecs/base/varint.h"

namespace quire {
namespace {

// Takes a number of at most `max` off the front of `stored`.
absl::StatusOr<size_t> TakeNumber(const char* what, uint64_t max,
                                  ByteView& stored) {
  QUIRE_ASSIGN_OR_RETURN(const uint64_t value, TakeVarint(stored));
  if (value > max) {
    return absl::DataLossError(
        absl::StrCat("the ", what, " is ", value, ", expected at most ", max));
  }
  return static_cast<size_t>(value);
}

// A text that comes in pieces, taken by any sizes.
class PieceReader {
 public:
  explicit PieceReader(DeflateEncoder::Source source) : source_(source) {}

  // The next bytes, at least one and at most `size_max`, which is not 0.
  absl::StatusOr<ByteView> Take(size_t size_max) {
    if (piece_.empty()) {
      QUIRE_ASSIGN_OR_RETURN(piece_, source_());
    }
    const ByteView taken = piece_.first(std::min(piece_.size(), size_max));
    piece_ = piece_.subspan(taken.size());
    return taken;
  }

  absl::Status Copy(MutableByteView to) {
    while (!to.empty()) {
      QUIRE_ASSIGN_OR_RETURN(const ByteView piece, Take(to.size()));
      std::ranges::copy(piece, to.begin());
      to = to.subspan(piece.size());
    }
    return absl::OkStatus();
  }

 private:
  DeflateEncoder::Source source_;
  ByteView piece_;
};

}  // namespace

void AppendInflatedHead(const InflatedHead& head, std::string& out) {
  QUIRE_CHECK(!head.members.empty());
  AppendVarint(head.members.size(), out);
  AppendVarint(head.text_size_bytes, out);
  size_t end = 0;
  for (const InflatedMember& member : head.members) {
    AppendVarint(member.offset - end, out);
    AppendVarint(DeflateRecipeKind(member.recipe), out);
    AppendVarint(member.recipe.member_size, out);
    AppendVarint(member.recipe.text_size, out);
    end = member.offset + static_cast<size_t>(member.recipe.member_size);
  }
  uint8_t checksum[sizeof(uint64_t)];
  StoreLittleEndian(head.checksum, checksum);
  out.append(AsText(checksum).data(), sizeof(checksum));
}

absl::Status TakeInflatedHead(ByteView& stored, uint64_t member_count,
                              size_t raw_size_bytes, InflatedHead& head) {
  head.members.clear();
  if (member_count == 0 ||
      member_count > raw_size_bytes / kInflatedMemberSizeMin) {
    return absl::DataLossError(absl::StrCat("a block of ", raw_size_bytes,
                                            " bytes cannot have ", member_count,
                                            " compressed members"));
  }
  QUIRE_ASSIGN_OR_RETURN(head.text_size_bytes,
                         TakeNumber("size of the inflated text",
                                    member_count == 1 ? kInflatedLargeSizeMax
                                                      : kInflatedBlockSizeMax,
                                    stored));
  size_t raw_left = raw_size_bytes;
  size_t text_left = head.text_size_bytes;
  uint64_t work_left = kInflatedBlockWorkMax;
  for (uint64_t i = 0; i < member_count; ++i) {
    InflatedMember member;
    QUIRE_ASSIGN_OR_RETURN(const size_t gap,
                           TakeNumber("gap before a member",
                                      std::min(raw_left, text_left), stored));
    raw_left -= gap;
    text_left -= gap;
    member.offset = raw_size_bytes - raw_left;
    QUIRE_ASSIGN_OR_RETURN(
        const size_t kind,
        TakeNumber("kind of a member", kDeflateRecipeKindEnd - 1, stored));
    QUIRE_RETURN_IF_ERROR(
        SetDeflateRecipeKind(static_cast<uint32_t>(kind), member.recipe));
    QUIRE_ASSIGN_OR_RETURN(member.recipe.member_size,
                           TakeNumber("size of a member", raw_left, stored));
    QUIRE_ASSIGN_OR_RETURN(
        member.recipe.text_size,
        TakeNumber("size of a member's text", text_left, stored));
    QUIRE_RETURN_IF_ERROR(CheckDeflateRecipe(member.recipe));
    const uint64_t work = DeflateWorkMax(member.recipe.text_size);
    if (member.recipe.member_size < kInflatedMemberSizeMin ||
        (work > work_left && member_count > 1)) {
      return absl::DataLossError(
          absl::StrCat("a member of ", member.recipe.member_size, " bytes, of ",
                       member.recipe.text_size, " of text, expected at least ",
                       kInflatedMemberSizeMin,
                       " bytes and no more work than a block may take"));
    }
    work_left -= std::min(work, work_left);
    raw_left -= static_cast<size_t>(member.recipe.member_size);
    text_left -= static_cast<size_t>(member.recipe.text_size);
    head.members.push_back(member);
  }
  if (raw_left != text_left) {
    return absl::DataLossError(
        absl::StrCat("behind the last member are ", raw_left,
                     " bytes of the block, but ", text_left, " of text"));
  }
  if (stored.size() < sizeof(uint64_t)) {
    return absl::DataLossError("the block's checksum is truncated");
  }
  head.checksum = LoadLittleEndian<uint64_t>(stored.data());
  stored = stored.subspan(sizeof(uint64_t));
  return absl::OkStatus();
}

absl::Status RecreateBlock(const InflatedHead& head,
                           DeflateEncoder::Source source,
                           DeflateEncoder& encoder, MutableByteView raw) {
  PieceReader text(source);
  size_t end = 0;
  for (const InflatedMember& member : head.members) {
    QUIRE_RETURN_IF_ERROR(text.Copy(raw.subspan(end, member.offset - end)));
    const auto member_size = static_cast<size_t>(member.recipe.member_size);
    auto text_left = static_cast<size_t>(member.recipe.text_size);
    QUIRE_RETURN_IF_ERROR(RecreateDeflateMember(
        member.recipe,
        [&] {
          absl::StatusOr<ByteView> piece = text.Take(text_left);
          text_left -= piece.ok() ? piece->size() : 0;
          return piece;
        },
        encoder, raw.subspan(member.offset, member_size)));
    end = member.offset + member_size;
  }
  QUIRE_RETURN_IF_ERROR(text.Copy(raw.subspan(end)));
  return Checksum64(raw) == head.checksum
             ? absl::OkStatus()
             : absl::DataLossError(
                   "the block made of inflated members differs from the one "
                   "that was stored");
}

BlockInflater::BlockInflater(size_t member_text_size_max)
    : finder_({.member_size_min = kInflatedMemberSizeMin,
               .text_size_max =
                   std::min(member_text_size_max, kInflatedLargeSizeMax)}) {}

bool BlockInflater::MayAdd(const DeflateRecipe& recipe, size_t text_size,
                           uint64_t work_left) const {
  if (recipe.member_size < kInflatedMemberSizeMin) {
    return false;
  }
  if (head_.members.empty()) {
    return text_size <= kInflatedLargeSizeMax;
  }
  return text_size <= kInflatedBlockSizeMax &&
         DeflateWorkMax(recipe.text_size) <= work_left;
}

bool BlockInflater::Inflate(ByteView block) {
  head_.members.clear();
  text_.clear();
  size_t end = 0;
  uint64_t work_left = kInflatedBlockWorkMax;
  finder_.Find(block, [&](const DeflateMember& member) {
    const auto offset = static_cast<size_t>(member.offset);
    const size_t behind =
        block.size() - offset - static_cast<size_t>(member.recipe.member_size);
    if (!MayAdd(member.recipe,
                text_.size() + (offset - end) + member.text.size() + behind,
                work_left)) {
      return;
    }
    work_left -= std::min(DeflateWorkMax(member.recipe.text_size), work_left);
    const ByteView gap = block.subspan(end, offset - end);
    text_.insert(text_.end(), gap.begin(), gap.end());
    text_.insert(text_.end(), member.text.begin(), member.text.end());
    end = offset + static_cast<size_t>(member.recipe.member_size);
    head_.members.push_back({.offset = offset, .recipe = member.recipe});
  });
  if (head_.members.empty()) {
    return false;
  }
  const ByteView rest = block.subspan(end);
  text_.insert(text_.end(), rest.begin(), rest.end());
  head_.text_size_bytes = text_.size();
  head_.checksum = Checksum64(block);
  return true;
}

}  // namespace quire
