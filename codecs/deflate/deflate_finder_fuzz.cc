// SPDX-License-Identifier: Apache-2.0
//
// Searches any bytes as a document: the members must lie in it, in order, and
// be reproducible from their text. The first byte chooses the limit on texts.
#include <cstdint>
#include <vector>

#include "codecs/base/bytes.h"
#include "codecs/base/check.h"
#include "codecs/deflate/deflate_encoder.h"
#include "codecs/deflate/deflate_finder.h"
#include "codecs/deflate/deflate_recipe.h"

namespace quire {
namespace {

void Check(ByteView input) {
  if (input.empty()) {
    return;
  }
  // Memory of the exact size, for AddressSanitizer.
  const std::vector<uint8_t> document(input.begin() + 1, input.end());
  DeflateFinder finder(
      {.member_size_min = 8, .text_size_max = size_t{64} << (input[0] & 15)});
  DeflateEncoder encoder;
  uint64_t end = 0;
  finder.Find(document, [&](const DeflateMember& member) {
    QUIRE_CHECK(member.offset >= end);
    end = member.offset + member.recipe.member_size;
    QUIRE_CHECK(end <= document.size());
    std::vector<uint8_t> made(member.recipe.member_size);
    const absl::Status status = RecreateDeflateMember(
        member.recipe, [&] { return absl::StatusOr<ByteView>(member.text); },
        encoder, made);
    QUIRE_CHECK(status.ok(), status.message());
    QUIRE_CHECK(AsText(made) ==
                AsText(ByteView(document).subspan(member.offset, made.size())));
  });
}

}  // namespace
}  // namespace quire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  quire::Check({data, size});
  return 0;
}
