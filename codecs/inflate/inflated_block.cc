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

// The member that `recipe` makes of `text`. Its checksum is not looked at.
absl::Status RecreateMember(const DeflateRecipe& recipe, ByteView text,
                            DeflateEncoder& encoder, MutableByteView member) {
  const size_t trailer_size = DeflateTrailerSize(recipe.container);
  MutableByteView left = member.first(member.size() - trailer_size);
  const absl::Status status =
      encoder.Encode(recipe.parameters, text,
                     [&left](ByteView piece) {
                       if (piece.size() > left.size()) {
                         return false;
                       }
                       std::ranges::copy(piece, left.begin());
                       left = left.subspan(piece.size());
                       return true;
                     },
                     {.work_max = DeflateWorkMax(text.size())});
  if (!status.ok() || !left.empty()) {
    return absl::DataLossError(
        absl::StrCat("a compressed member is not ", member.size(),
                     " bytes of its text: ", status.message()));
  }
  const DeflateTrailer trailer = MakeDeflateTrailer(recipe.container, text);
  std::copy_n(trailer.begin(), trailer_size, member.last(trailer_size).begin());
  return absl::OkStatus();
}

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
  QUIRE_ASSIGN_OR_RETURN(
      head.text_size_bytes,
      TakeNumber("size of the inflated text", kInflatedBlockSizeMax, stored));
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
        work > work_left) {
      return absl::DataLossError(
          absl::StrCat("a member of ", member.recipe.member_size, " bytes, of ",
                       member.recipe.text_size, " of text, expected at least ",
                       kInflatedMemberSizeMin,
                       " bytes and no more work than a block may take"));
    }
    work_left -= work;
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

absl::Status RecreateBlock(const InflatedHead& head, ByteView text,
                           DeflateEncoder& encoder, MutableByteView raw) {
  QUIRE_CHECK(text.size() == head.text_size_bytes);
  size_t end = 0;
  for (const InflatedMember& member : head.members) {
    const size_t gap = member.offset - end;
    const auto member_size = static_cast<size_t>(member.recipe.member_size);
    const auto text_size = static_cast<size_t>(member.recipe.text_size);
    std::ranges::copy(text.first(gap), raw.subspan(end).begin());
    text = text.subspan(gap);
    QUIRE_RETURN_IF_ERROR(
        RecreateMember(member.recipe, text.first(text_size), encoder,
                       raw.subspan(member.offset, member_size)));
    text = text.subspan(text_size);
    end = member.offset + member_size;
  }
  std::ranges::copy(text, raw.subspan(end).begin());
  return Checksum64(raw) == head.checksum
             ? absl::OkStatus()
             : absl::DataLossError(
                   "the block made of inflated members differs from the one "
                   "that was stored");
}

BlockInflater::BlockInflater(size_t member_text_size_max)
    : finder_({.member_size_min = kInflatedMemberSizeMin,
               .text_size_max =
                   std::min(member_text_size_max, kInflatedBlockSizeMax)}) {}

bool BlockInflater::Inflate(ByteView block) {
  head_.members.clear();
  text_.clear();
  size_t end = 0;
  uint64_t work_left = kInflatedBlockWorkMax;
  finder_.Find(block, [&](const DeflateMember& member) {
    const auto offset = static_cast<size_t>(member.offset);
    const uint64_t work = DeflateWorkMax(member.recipe.text_size);
    const size_t behind =
        block.size() - offset - static_cast<size_t>(member.recipe.member_size);
    if (work > work_left ||
        member.recipe.member_size < kInflatedMemberSizeMin ||
        text_.size() + (offset - end) + member.text.size() + behind >
            kInflatedBlockSizeMax) {
      return;
    }
    work_left -= work;
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
