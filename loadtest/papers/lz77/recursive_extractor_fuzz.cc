// SPDX-License-Identifier: GPL-3.0-or-later
//
// Arbitrary bytes as a block of phrases. It is rejected, or all indexes give
// each range of its text as decoding from the start does. The first byte
// chooses the smallest match, the next eight the text's size and a range.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "codecs/base/check.h"
#include "codecs/base/endian.h"
#include "loadtest/papers/lz77/phrase_index.h"
#include "loadtest/papers/lz77/recursive_extractor.h"

namespace quire {
namespace {

constexpr size_t kHeaderSize = 9;
constexpr uint32_t kStepsMax = 20'000;

template <class Index>
void CheckSlice(const PhraseBlock& block, const Index& index, uint32_t offset,
                ByteView expected) {
  static RecursiveExtractor extractor;
  std::vector<uint8_t> out(expected.size());
  if (extractor.Extract(block, index, offset, out, kStepsMax)) {
    QUIRE_CHECK(std::ranges::equal(out, expected));
  }
}

void Check(ByteView input) {
  if (input.size() < kHeaderSize) {
    return;
  }
  const uint32_t match_size_min =
      input[0] % 2 == 0 ? kLz4MatchSizeMin : kDeflateMatchSizeMin;
  const size_t text_size = LoadLittleEndian<uint32_t>(&input[1]) % 70'000;
  const std::vector<uint8_t> stored(input.begin() + kHeaderSize, input.end());
  const auto block = PhraseBlock::Check(stored, text_size, match_size_min);
  if (!block.ok()) {
    return;
  }
  std::vector<uint8_t> text(text_size);
  DecodePhrases(*block, text);
  const std::vector<PhrasePlace> places = block->Places();
  const uint32_t offset = static_cast<uint32_t>(
      LoadLittleEndian<uint16_t>(&input[5]) % (text_size + 1));
  const size_t size =
      LoadLittleEndian<uint16_t>(&input[7]) % (text_size - offset + 1);
  const ByteView expected = ByteView(text).subspan(offset, size);
  CheckSlice(*block, PlainPhraseIndex(places, text_size, stored.size()), offset,
             expected);
  CheckSlice(*block, SparsePhraseIndex(places, text_size, stored.size()),
             offset, expected);
  CheckSlice(*block, SampledPhraseIndex(places, text_size, stored.size()),
             offset, expected);
  CheckSlice(*block, GridPhraseIndex(places, text_size, stored.size()), offset,
             expected);
}

}  // namespace
}  // namespace quire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  quire::Check({data, size});
  return 0;
}
