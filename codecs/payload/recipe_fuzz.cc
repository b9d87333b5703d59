// SPDX-License-Identifier: Apache-2.0
//
// Parses untrusted recipes, and applies them to any text.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "codecs/base/bytes.h"
#include "codecs/base/check.h"
#include "codecs/base/endian.h"
#include "codecs/payload/recipe.h"

namespace quire {
namespace {

void TakeAndFollow(ByteView input) {
  if (input.size() < sizeof(uint16_t)) {
    return;
  }
  const size_t raw_size = LoadLittleEndian<uint16_t>(input.data()) + size_t{1};
  ByteView stored = input.subspan(sizeof(uint16_t));
  const ByteView begin = stored;
  Recipe recipe;
  if (!TakeRecipe(stored, raw_size, recipe).ok()) {
    return;
  }
  // Each recipe has only one form.
  std::string again;
  AppendRecipe(recipe, again);
  QUIRE_CHECK(std::ranges::equal(AsBytes(again), begin.first(again.size())));
  // The rest of the input as the text, repeated.
  std::vector<uint8_t> text(recipe.text_size_bytes);
  for (size_t i = 0; i < text.size() && !stored.empty(); ++i) {
    text[i] = stored[i % stored.size()];
  }
  static auto* const encoder = new DeflateEncoder;
  for (const InflatedMember& member : recipe.members) {
    std::vector<uint8_t> raw(static_cast<size_t>(member.recipe.member_size));
    RecreateMember(
        member,
        [&] {
          return absl::StatusOr<ByteView>(ByteView(text).subspan(
              member.text_offset,
              static_cast<size_t>(member.recipe.text_size)));
        },
        *encoder, raw)
        .IgnoreError();
  }
}

// Members that the finder reports are reproduced.
void InflateAndRecreate(ByteView block) {
  if (block.empty() || block.size() > kBlockSizeBytesMax) {
    return;
  }
  static auto* const inflater = new BlockInflater(kInflatedLargeSizeMax);
  static auto* const encoder = new DeflateEncoder;
  if (!inflater->Inflate(block)) {
    return;
  }
  const Recipe& recipe = inflater->recipe();
  for (const InflatedMember& member : recipe.members) {
    const auto size = static_cast<size_t>(member.recipe.member_size);
    std::vector<uint8_t> raw(size);
    // In pieces that end at any offset.
    ByteView left = inflater->text().subspan(
        member.text_offset, static_cast<size_t>(member.recipe.text_size));
    const auto next = [&] {
      const ByteView piece = left.first(std::min<size_t>(left.size(), 1009));
      left = left.subspan(piece.size());
      return absl::StatusOr<ByteView>(piece);
    };
    QUIRE_CHECK(RecreateMember(member, next, *encoder, raw).ok());
    QUIRE_CHECK(std::ranges::equal(raw, block.subspan(member.offset, size)));
  }
}

}  // namespace
}  // namespace quire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  quire::TakeAndFollow({data, size});
  quire::InflateAndRecreate({data, size});
  return 0;
}
