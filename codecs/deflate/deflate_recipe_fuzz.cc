// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a recipe with the member's text behind it: making the member
// again must fail, or give what the recipe says, in bounded memory.
#include <cstdint>
#include <vector>

#include "codecs/base/bytes.h"
#include "codecs/base/check.h"
#include "codecs/base/checksum.h"
#include "codecs/deflate/deflate_encoder.h"
#include "codecs/deflate/deflate_recipe.h"

namespace quire {
namespace {

void Check(ByteView input) {
  ByteView rest = input;
  absl::StatusOr<DeflateRecipe> recipe = TakeDeflateRecipe(rest);
  if (!recipe.ok()) {
    QUIRE_CHECK(rest.data() == input.data());
    return;
  }
  std::string again;
  AppendDeflateRecipe(*recipe, again);
  const size_t used = input.size() - rest.size();
  QUIRE_CHECK(AsText(input.first(used)) == again);
  // A text that has the size that the recipe wants lets more be reached.
  if (recipe->text_size > 1 << 16 || recipe->member_size > 1 << 17) {
    return;
  }
  std::vector<uint8_t> text(rest.begin(), rest.end());
  text.resize(recipe->text_size);
  DeflateEncoder encoder;
  std::vector<uint8_t> member(recipe->member_size);
  if (RecreateDeflateMember(*recipe, text, encoder, member).ok()) {
    QUIRE_CHECK(Checksum64(member) == recipe->checksum);
  }
}

}  // namespace
}  // namespace quire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  quire::Check({data, size});
  return 0;
}
