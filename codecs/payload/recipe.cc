// SPDX-License-Identifier: Apache-2.0
#include "codecs/payload/recipe.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

#include "codecs/base/check.h"
#include "codecs/base/checksum.h"
#include "codecs/base/endian.h"
#include "codecs/base/status_macros.h"
#include "codecs/base/varint.h"

namespace quire {
namespace {

// Parses a number of at most `max`, and removes it from the front of `stored`.
absl::StatusOr<size_t> TakeNumber(const char* what, uint64_t max,
                                  ByteView& stored) {
  QUIRE_ASSIGN_OR_RETURN(const uint64_t value, TakeVarint(stored));
  if (value > max) {
    return absl::DataLossError(
        absl::StrCat("the ", what, " is ", value, ", expected at most ", max));
  }
  return static_cast<size_t>(value);
}

uint32_t MemberChecksum(ByteView member) {
  return static_cast<uint32_t>(Checksum64(member));
}

}  // namespace

void AppendRecipe(const Recipe& recipe, std::string& out) {
  QUIRE_CHECK(!recipe.members.empty());
  AppendVarint(recipe.members.size(), out);
  AppendVarint(recipe.text_size_bytes, out);
  size_t end = 0;
  for (const InflatedMember& member : recipe.members) {
    AppendVarint(member.offset - end, out);
    AppendVarint(DeflateRecipeKind(member.recipe), out);
    AppendVarint(member.recipe.member_size, out);
    AppendVarint(member.recipe.text_size, out);
    uint8_t checksum[sizeof(uint32_t)];
    StoreLittleEndian(member.checksum, checksum);
    out.append(AsText(checksum).data(), sizeof(checksum));
    end = member.offset + static_cast<size_t>(member.recipe.member_size);
  }
}

absl::Status TakeRecipe(ByteView& stored, size_t raw_size_bytes,
                        Recipe& recipe) {
  recipe.members.clear();
  QUIRE_ASSIGN_OR_RETURN(const uint64_t member_count, TakeVarint(stored));
  if (member_count == 0 ||
      member_count > raw_size_bytes / kInflatedMemberSizeMin) {
    return absl::DataLossError(absl::StrCat("a block of ", raw_size_bytes,
                                            " bytes cannot have ", member_count,
                                            " compressed members"));
  }
  QUIRE_ASSIGN_OR_RETURN(recipe.text_size_bytes,
                         TakeNumber("size of the inflated text",
                                    member_count == 1 ? kInflatedLargeSizeMax
                                                      : kInflatedBlockSizeMax,
                                    stored));
  // An empty text has no partition. The checks of members allow it:
  // DeflateMemberSizeMax(0) is kInflatedMemberSizeMin.
  if (recipe.text_size_bytes == 0) {
    return absl::DataLossError(
        "the size of the inflated text is 0, expected at least 1");
  }
  size_t raw_left = raw_size_bytes;
  size_t text_left = recipe.text_size_bytes;
  uint64_t work_left = kInflatedBlockWorkMax;
  for (uint64_t i = 0; i < member_count; ++i) {
    InflatedMember member;
    QUIRE_ASSIGN_OR_RETURN(const size_t gap,
                           TakeNumber("gap before a member",
                                      std::min(raw_left, text_left), stored));
    raw_left -= gap;
    text_left -= gap;
    member.offset = raw_size_bytes - raw_left;
    member.text_offset = recipe.text_size_bytes - text_left;
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
    if (stored.size() < sizeof(uint32_t)) {
      return absl::DataLossError("the checksum of a member is truncated");
    }
    member.checksum = LoadLittleEndian<uint32_t>(stored.data());
    stored = stored.subspan(sizeof(uint32_t));
    recipe.members.push_back(member);
  }
  if (raw_left != text_left) {
    return absl::DataLossError(
        absl::StrCat("behind the last member are ", raw_left,
                     " bytes of the block, but ", text_left, " of text"));
  }
  return absl::OkStatus();
}

absl::Status RecreateMember(const InflatedMember& member,
                            DeflateEncoder::Source source,
                            DeflateEncoder& encoder, MutableByteView out) {
  QUIRE_RETURN_IF_ERROR(
      RecreateDeflateMember(member.recipe, source, encoder, out));
  return MemberChecksum(out) == member.checksum
             ? absl::OkStatus()
             : absl::DataLossError(absl::StrCat(
                   "the member at ", member.offset,
                   " is reproduced with other bytes than were stored"));
}

BlockInflater::BlockInflater(size_t member_text_size_max,
                             const KnownDeflateMembers* known)
    : finder_({.member_size_min = kInflatedMemberSizeMin,
               .text_size_max =
                   std::min(member_text_size_max, kInflatedLargeSizeMax),
               .known = known}) {}

size_t BlockInflater::MemberBytes() const {
  uint64_t size_bytes = 0;
  for (const InflatedMember& member : recipe_.members) {
    size_bytes += member.recipe.member_size;
  }
  return static_cast<size_t>(size_bytes);
}

bool BlockInflater::MayAdd(const DeflateRecipe& recipe, size_t text_size,
                           uint64_t work_left) const {
  if (recipe.member_size < kInflatedMemberSizeMin) {
    return false;
  }
  if (recipe_.members.empty()) {
    return text_size <= kInflatedLargeSizeMax;
  }
  return text_size <= kInflatedBlockSizeMax &&
         DeflateWorkMax(recipe.text_size) <= work_left;
}

bool BlockInflater::Inflate(ByteView block) {
  recipe_.members.clear();
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
    const size_t text_offset = text_.size();
    text_.insert(text_.end(), member.text.begin(), member.text.end());
    const auto size = static_cast<size_t>(member.recipe.member_size);
    end = offset + size;
    recipe_.members.push_back(
        {.offset = offset,
         .text_offset = text_offset,
         .recipe = member.recipe,
         .checksum = MemberChecksum(block.subspan(offset, size))});
  });
  if (recipe_.members.empty()) {
    return false;
  }
  const ByteView rest = block.subspan(end);
  text_.insert(text_.end(), rest.begin(), rest.end());
  recipe_.text_size_bytes = text_.size();
  return true;
}

}  // namespace quire
